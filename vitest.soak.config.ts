import { defineConfig } from 'vitest/config'
import ordinary from './vitest.config.ts'

/** A fleet in which processes are killed all the time. Its length, its items and its seed come from variables. */
export default defineConfig({
  test: { ...ordinary.test, include: ['test/soak/**/*.test.ts'], exclude: ['node_modules/**'] },
})
