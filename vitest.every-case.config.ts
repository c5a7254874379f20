import { defineConfig } from 'vitest/config'
import ordinary from './vitest.config.ts'

/** The suites of which `npm test` takes only a part of the cases. */
export default defineConfig({
  test: {
    ...ordinary.test,
    env: { ...ordinary.test?.env, COPPICE_TEST: 'every-case' },
    include: [
      'test/crash/{failpoints,fleet,messages,messages-faults,outliving,salvage-creation}.test.ts',
      'test/e2e/{fleet-story,import-archon}.test.ts',
      'test/e2e/conversations/{budget,chat,order,shutdown,story}.test.ts',
      'test/isolation/{follow,inside,trust}.test.ts',
      'test/security/{frozen,input,long-text}.test.ts',
    ],
  },
})
