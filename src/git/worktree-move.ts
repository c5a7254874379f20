import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Tree } from './door.ts'

/**
 * The directory and git's record of it in one go, also when it is locked: whose lock it is, the caller has made sure.
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
    // The first --force is for a destination git has a stale record of, only the second is for locks.
    args: ['worktree', 'move', '--force', '--force', '--end-of-options', tree.path, to],
    locks: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
  return { ...tree, path: to }
}
