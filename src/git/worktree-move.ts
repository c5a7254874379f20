import { rename } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import type { Tree } from './door.ts'
import { pointRecordAtWorktree, pointWorktreeAtRecord } from './worktree-repair.ts'

/**
 * Does what `git worktree move` does, in under a millisecond: git takes as long to start as the rest of a creation from
 * a spare. Moves a locked worktree too: the caller has checked whose lock it is, that nothing is at `to`, and that there
 * are no submodules, whose links would break.
 */
export const moveWorktree = async (tree: Tree, to: string, renamed: () => Promise<void>): Promise<Tree> => {
  // A relative link (`worktree.useRelativePaths`) would lead elsewhere from the new place. An absolute one holds in both.
  const link = linkedGitDirectory(readUntrustedTextSync(join(tree.path, '.git'), { maxBytes: maxLineBytes })?.trimEnd())
  if (link === undefined || !isAbsolute(link)) pointWorktreeAtRecord(tree.path, tree.gitDir)
  await rename(tree.path, to)
  try {
    await renamed()
    pointRecordAtWorktree(tree.gitDir, to)
  } catch (error) {
    await rename(to, tree.path)
    throw error
  }
  return { ...tree, path: to }
}
