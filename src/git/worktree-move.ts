import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Tree } from './door.ts'

/**
 * Moves the directory and git's record of it, even if locked: the caller has checked whose lock it is.
 * Git refuses to move a worktree with submodules.
 */
export const moveWorktree = async (
  git: Git,
  tree: Tree,
  to: string,
  { onSpawn, signal }: CallOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<Tree> => {
  await git.run({
    operation: 'worktree move',
    at: { commonDir: tree.commonDir },
    // The first --force is for a destination with a stale record, the second for locks.
    args: ['worktree', 'move', '--force', '--force', '--end-of-options', tree.path, to],
    locks: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
  return { ...tree, path: to }
}
