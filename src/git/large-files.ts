import type { Setting } from './neutral.ts'

/**
 * Git LFS asks the server that the commit's own `.lfsconfig` names, with the user's credentials. With these settings a
 * checkout leaves its pointer files as they are and asks nobody.
 */
export const withoutLargeFiles: readonly Setting[] = [
  ['filter.lfs.smudge', ''],
  ['filter.lfs.process', ''],
  ['filter.lfs.required', 'false'],
]
