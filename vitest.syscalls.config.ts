import { spawnSync } from 'node:child_process'
import { defineConfig } from 'vitest/config'

// A sweep that silently skipped itself would look like a sweep that passed.
if (spawnSync('strace', ['-V'], { stdio: 'ignore' }).status !== 0) {
  throw new Error('the system-call sweep needs strace and it cannot be run: install it (apt-get install strace)')
}

export default defineConfig({
  test: {
    include: ['test/crash/syscalls/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 600_000,
    hookTimeout: 60_000,
    globalSetup: ['test/helpers/global-setup.ts'],
  },
})
