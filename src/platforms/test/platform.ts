import { createLocalPlatform, type LocalPlatform } from '../local.ts'

/** Only with `--test-platform`: tests the whole flow without an account. */
export const createTestPlatform = (): LocalPlatform => createLocalPlatform('test')
