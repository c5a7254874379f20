import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { LeftOut } from '../../../domain/removal/restore-point.ts'
import type { Tree } from '../../../domain/tree.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import { copyTree } from '../checkout/restore-point/archive.ts'

/**
 * Restores the index and operations in progress, not what ties a record to its directory: HEAD, gitdir, lock, token.
 */
const notBrought = new Set(['HEAD', 'commondir', 'gitdir', 'locked', 'coppice', 'modules'])

export const restoreGitFiles = async (saved: string, tree: Tree, leftOut: LeftOut[]): Promise<void> => {
  for (const name of await readdir(saved)) {
    // A lock left by a killed git would block every later one.
    if (notBrought.has(name) || name.endsWith('.lock')) continue
    await deleteTree(join(tree.gitDir, name))
    await copyTree(saved, tree.gitDir, name, leftOut)
  }
}
