import { lstatSync } from 'node:fs'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { shellWord } from '../domain/shell-word.ts'
import { mountsInside } from '../process/files/mounts.ts'
import { type AdminDir, readAdminDir } from './admin-dir.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { remedy, shell } from '../domain/remedy.ts'

/**
 * Deletes git's record of one worktree whose directory is already gone, and nothing else. Never `prune`, which takes
 * every record whose directory cannot be seen at the moment: one unmounted disk, and all its worktrees are forgotten.
 * A locked record stays: git refuses.
 */
export const forgetWorktree = async (
  git: Git,
  repo: Repo,
  { dir }: Pick<AdminDir, 'dir'>,
  { onSpawn, signal }: CallOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  // Read again: the record may have been given to another worktree since the caller looked.
  const record = await readAdminDir(dir)
  if (record === undefined) return
  const path = record.worktreePath
  if (path === undefined) throw new AppError('git-failed', `git's record ${dir} does not say where its files are`)
  // `git worktree remove` on a directory that is there would delete it, ignored files and all.
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
    throw new AppError('path-taken', `${path} is still there, so git's record of it stays`)
  }
  // Git deletes the record's directory file by file, and would empty what is mounted in it.
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
    throw new AppError('git-failed', `git still has a record of ${path} after being told to forget it`)
  }
}
