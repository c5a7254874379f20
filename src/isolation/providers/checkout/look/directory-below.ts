import { lstat } from 'node:fs/promises'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow } from '../../../../domain/raw-path.ts'

/**
 * Is there a directory at this raw path, with no link on the way to it? What a link leads to is not part of the tree.
 * Part by part instead of by real path: a disk that ignores case answers with another spelling.
 */
export const isDirectoryBelow = async (root: string, path: string): Promise<boolean> => {
  const parts = path.split('/')
  for (const end of parts.keys()) {
    const found = await unlessMissing(lstat(bytesBelow(root, parts.slice(0, end + 1).join('/'))))
    if (found?.isDirectory() !== true) return false
  }
  return true
}
