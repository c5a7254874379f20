import { statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Most of the tests' time is waiting for the disk to sync; in memory they are several times as fast. */
const temporary = (): string => {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > 2 * 1024 ** 3 ? '/dev/shm' : tmpdir()
  } catch {
    return tmpdir()
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['test/crash/syscalls/**', 'test/agents/**', 'test/load/**', 'node_modules/**'],
    env: { TMPDIR: temporary() },
    pool: 'forks',
    // Most tests wait for git, a server or an agent: one worker less than cores, as usual, would leave a core idle.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    globalSetup: ['test/helpers/global-setup.ts'],
  },
})
