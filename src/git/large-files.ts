import type { Setting } from './neutral.ts'

/**
 * Git LFS contacts the server named in the commit's own `.lfsconfig`, with the user's credentials. With these settings
 * a checkout keeps the pointer files and contacts no server.
 */
export const withoutLargeFiles: readonly Setting[] = [
  ['filter.lfs.smudge', ''],
  ['filter.lfs.process', ''],
  ['filter.lfs.required', 'false'],
]
