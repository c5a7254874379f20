import { createLocalPlatform, type LocalPlatform } from '../local.ts'

/** Only with `--test-platform`: for trying the whole way without an account. */
export const createTestPlatform = (): LocalPlatform => createLocalPlatform('test')
