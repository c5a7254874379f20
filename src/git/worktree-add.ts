import { AppError, isAppError } from '../domain/errors.ts'
import type { BranchName, Sha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { readWorktreeLink } from './admin-dir.ts'
import type { Git, Repo, Tree } from './door.ts'

export type AddWorktree = {
  /** Absolute. */
  readonly path: string
  /** An existing branch is used as is, ignoring `at`. */
  readonly branch: { readonly create: BranchName } | { readonly existing: BranchName } | { readonly detached: true }
  readonly at: Sha
  /** In git's `locked` file from the start; otherwise a crash would leave `initializing` there. */
  readonly lockReason: string
  readonly onSpawn?: (identity: ProcessIdentity) => void
}

/**
 * Creates branch, record and directory, without files: call `checkOutHead` next. Until `git worktree add` exits, any
 * signal but SIGKILL makes it delete the directory with everything in it. With the checkout included that takes
 * seconds, in which somebody may write there. For the same reason it can't be cancelled, and prints nothing: after our
 * death a message would end it with SIGPIPE.
 *
 * `--no-track`: of 48 parallel adds with tracking, 23 failed on the shared configuration's lock.
 */
export const addWorktree = async (
  git: Git,
  repo: Repo,
  { path, branch, at, lockReason, onSpawn }: AddWorktree,
): Promise<Tree> => {
  const args = ['worktree', 'add', '--quiet', '--no-checkout', '--lock', '--reason', lockReason]
  if ('create' in branch) args.push('--no-track', '-b', branch.create, '--end-of-options', path, at)
  else if ('existing' in branch) args.push('--end-of-options', path, branch.existing)
  else args.push('--detach', '--end-of-options', path, at)
  try {
    await git.run({
      operation: 'worktree add',
      at: { commonDir: repo.commonDir },
      args,
      locks: true,
      killAtOnce: true,
      ...(onSpawn && { onSpawn }),
    })
  } catch (error) {
    throw explained(error, path)
  }
  const gitDir = await readWorktreeLink(path)
  if (gitDir === undefined) throw new AppError('git-failed', `git worktree add left no record of ${path}`)
  return { commonDir: repo.commonDir, gitDir, path }
}

const explained = (error: unknown, path: string): unknown => {
  if (!isAppError(error, 'git-failed')) return error
  if (/already (?:checked out|used by worktree) at/.test(error.message)) {
    return new AppError('branch-in-use', error.message, { cause: error })
  }
  if (error.message.includes(`'${path}' already exists`)) {
    return new AppError('path-taken', `${path} already exists`, { cause: error })
  }
  return error
}
