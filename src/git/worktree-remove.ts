import { lstatSync } from 'node:fs'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { mountsInside } from '../process/files/mounts.ts'
import { type AdminDir, readAdminDir } from './admin-dir.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { remedy, shell } from '../domain/remedy.ts'

/**
 * Deletes git's record of one worktree whose directory is already gone, and nothing else. Never `prune`, which deletes
 * every record whose directory isn't visible right now: one unmounted disk, and all its worktrees are lost.
 * Git refuses to delete a locked record.
 */
export const removeWorktreeRecord = async (
  git: Git,
  repo: Repo,
  { dir }: Pick<AdminDir, 'dir'>,
  { onSpawn, signal }: CallOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  // Read again: the record may belong to another worktree by now.
  const record = await readAdminDir(dir)
  if (record === undefined) return
  const path = record.worktreePath
  if (path === undefined) throw new AppError('git-failed', `git's worktree record ${dir} has no path`)
  // `git worktree remove` would delete an existing directory, ignored files and all.
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
    throw new AppError('path-taken', `${path} still exists, so git's record of it was kept`)
  }
  // Git deletes the record file by file, and would empty anything mounted in it.
  const [mount] = await mountsInside([dir])
  if (mount !== undefined) {
    throw new AppError('path-taken', `something is mounted inside git's record: ${mount.path} (${mount.what})`, {
      remedy: remedy`${shell(`umount ${shellWord(mount.path)}`)}`,
    })
  }
  await git.run({
    operation: 'worktree remove',
    at: { commonDir: repo.commonDir },
    args: ['worktree', 'remove', '--end-of-options', path],
    locks: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
  if ((await readAdminDir(dir)) !== undefined) {
    throw new AppError('git-failed', `couldn't delete git's record of ${path}`)
  }
}
