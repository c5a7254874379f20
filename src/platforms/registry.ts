import { createCliPlatform } from './cli/platform.ts'
import { createTestPlatform } from './test/platform.ts'
import { createWebPlatform } from './web/platform.ts'

/** Platforms that need no account. To add one: a folder and a line. */
export const localPlatforms = {
  web: createWebPlatform,
  cli: createCliPlatform,
  test: createTestPlatform,
} as const

export type LocalPlatformName = keyof typeof localPlatforms
