import { tmpdir } from 'node:os'
import { defineConfig } from 'vitest/config'
import ordinary from './vitest.config.ts'

/**
 * What takes long: the real agent programs, which have to be installed first (scripts/install-agents.ts puts them into a
 * cache outside of this package), and the load of a burst. Not in memory: Codex's own sandbox has a /dev of its own and
 * sees nothing of /dev/shm.
 */
export default defineConfig({
  test: {
    ...ordinary.test,
    env: { ...ordinary.test?.env, TMPDIR: tmpdir() },
    include: ['test/agents/**/*.test.ts', 'test/load/**/*.test.ts'],
    exclude: ['node_modules/**'],
  },
})
