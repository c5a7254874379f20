import { lstat } from 'node:fs/promises'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow } from '../../../../domain/text/raw-path.ts'

/**
 * Whether a directory is at this raw path, with no link on the way: a link's target isn't part of the tree. Checks each
 * part, not the real path: a case-insensitive disk returns another spelling.
 */
export const isDirectoryBelow = async (root: string, path: string): Promise<boolean> => {
  const parts = path.split('/')
  for (const end of parts.keys()) {
    const found = await unlessMissing(lstat(bytesBelow(root, parts.slice(0, end + 1).join('/'))))
    if (found?.isDirectory() !== true) return false
  }
  return true
}
