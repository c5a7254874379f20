import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, toAppError } from '../domain/errors.ts'
import type { BranchName, Sha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { gitFailure } from './failure.ts'
import { assertNothingInPlace } from './in-place.ts'
import type { Setting } from './neutral.ts'
import { readSymbolicRef, resolveCommit, updateRefs } from './refs.ts'
import { isUntouchedByStat } from './untouched.ts'
import { remedy, shell } from '../domain/remedy.ts'

export type CheckoutOptions = CallOptions & { readonly settings?: readonly Setting[] | undefined }

/**
 * Switches a worktree to a detached commit. Refuses to overwrite changes and ignored files. Also fails if git couldn't
 * write a file: git reports that, but exits with 0.
 */
export const checkoutDetached = async (
  git: Git,
  tree: Tree,
  sha: Sha,
  { signal, settings, onSpawn }: CheckoutOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  const { stderr } = await git.run({
    operation: 'checkout',
    at: tree,
    args: [
      'checkout',
      '--quiet',
      '--detach',
      '--no-overwrite-ignore',
      '--no-recurse-submodules',
      '--no-guess',
      sha,
      '--',
    ],
    locks: true,
    ...(settings && { settings }),
    ...(signal && { signal }),
    ...(onSpawn && { onSpawn }),
  })
  // Other errors may be harmless, such as that of a filter that isn't required.
  if (!/^error: unable to /m.test(stderr)) return
  throw gitFailure('checkout', { exitCode: 0, signal: null, stderr }, (text) => text)
}

/**
 * Writes the files of a new checkout, which has neither files nor an index yet. Fails if somebody has put any there: git
 * would delete staged files and replace ignored ones. Or during the checkout, if a file is in the way: `reset --hard`
 * would replace it. (`git checkout` exits with 0 if it couldn't write a file.)
 */
export const checkOutHead = async (
  git: Git,
  tree: Tree,
  { signal, settings, onSpawn }: CheckoutOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  await assertUntouched(tree)
  await git.run({
    operation: 'checkout',
    at: tree,
    args: ['reset', '--quiet', '--merge'],
    locks: true,
    ...(settings && { settings }),
    ...(signal && { signal }),
    ...(onSpawn && { onSpawn }),
  })
}

const assertUntouched = async ({ path, gitDir }: Tree): Promise<void> => {
  const hasFiles = (await readdir(path)).some((name) => name !== '.git')
  if (!hasFiles && !existsSync(join(gitDir, 'index'))) return
  const what = hasFiles ? 'put files into' : 'staged files in'
  throw new AppError('busy', `somebody ${what} ${path} while it was being created`, { remedy: 'try again' })
}

export type BranchMove = { readonly branch: BranchName; readonly from: Sha; readonly to: Sha }

/**
 * Moves the checked-out branch and its files to another commit, if it is still at `from`: a commit made meanwhile
 * stays. Throws if nothing moved, `busy` if something is in the way of a new file. Edits hidden by a filter are
 * replaced: call `inTheWay` first.
 *
 * Unlike `merge`, `read-tree` and `update-ref` take no options from the repository's configuration, and both name the
 * commit they start from. Files first: after a crash in between, the branch is unchanged and the new files are staged.
 * The other way round git would show the pull request's own changes as deleted, and a commit would revert them.
 */
export const moveBranch = async (
  git: Git,
  tree: Tree,
  move: BranchMove,
  { settings }: CheckoutOptions = {},
): Promise<void> => {
  const { branch, from, to } = move
  await assertHead(git, tree, branch, from)
  const isThere = await hasFilesOf(git, tree, to)
  if (!isThere) await moveFiles(git, tree, { from, to, settings })
  try {
    await assertHead(git, tree, branch, from)
    await moveRef(git, tree, move)
    await assertHead(git, tree, branch, to)
  } catch (error) {
    if (!isThere) await putBack(git, tree, { from, to, settings })
    throw error
  }
}

/** Index and files match this commit exactly: in an interrupted move, only the branch is left to update. */
export const hasFilesOf = async (git: Git, tree: Tree, commit: Sha): Promise<boolean> => {
  if (!(await isIndexOf(git, tree, commit))) return false
  await refresh(git, tree)
  return isUntouchedByStat(git, tree)
}

/** A touched file counts as changed until the index is refreshed. Exit code 1: another one has changed. */
const refresh = async (git: Git, tree: Tree, { settings }: Pick<CheckoutOptions, 'settings'> = {}): Promise<void> => {
  const args = ['update-index', '-q', '--refresh']
  await git.run({ operation: 'update-index', at: tree, args, ok: [0, 1], locks: true, ...(settings && { settings }) })
}

const isIndexOf = async (git: Git, tree: Tree, commit: string): Promise<boolean> => {
  const args = ['diff-index', '--cached', '--quiet', '--no-ext-diff', '--ignore-submodules=none', commit, '--']
  const { exitCode } = await git.run({ operation: 'diff-index', at: tree, args, ok: [0, 1] })
  return exitCode === 0
}

type FileMove = Omit<BranchMove, 'branch'> & Pick<CheckoutOptions, 'settings'>

/**
 * Git refuses if a tracked file it would write differs from `from`. It doesn't check ignored files, so we do that last:
 * one that appears in the milliseconds until git writes that path is still replaced.
 */
const moveFiles = async (git: Git, tree: Tree, { from, to, settings }: FileMove): Promise<void> => {
  await refresh(git, tree, settings === undefined ? {} : { settings })
  await assertNothingInPlace(git, tree, { from, to })
  const args = ['read-tree', '-m', '-u', '--no-recurse-submodules', from, to]
  await git.run({ operation: 'read-tree', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** The branch wasn't moved. If somebody has committed the new files meanwhile, they are theirs. */
const putBack = async (git: Git, tree: Tree, { from, to, settings }: FileMove): Promise<void> => {
  try {
    if (!(await isIndexOf(git, tree, 'HEAD'))) await moveFiles(git, tree, { from: to, to: from, settings })
  } catch (error) {
    throw new AppError('git-failed', `the branch didn't move, and its files did: ${toAppError(error).message}`, {
      remedy: remedy`run ${shell('git status')} in ${shellWord(tree.path)}; the new files are those of ${to}`,
    })
  }
}

const moveRef = async (git: Git, tree: Tree, { branch, from, to }: BranchMove): Promise<void> => {
  const command = { update: `refs/heads/${branch}`, to, from }
  if (!(await updateRefs(git, tree, [command], { reason: followReason })).ok) throw moved(branch)
}

/** Reflog message: this isn't a commit made here. */
export const followReason = 'coppice: follow the pull request'

const assertHead = async (git: Git, tree: Tree, branch: BranchName, sha: Sha): Promise<void> => {
  const [ref, head] = await Promise.all([readSymbolicRef(git, tree, 'HEAD'), resolveCommit(git, tree, 'HEAD')])
  if (ref !== `refs/heads/${branch}` || head !== sha) throw moved(branch)
}

const moved = (branch: BranchName): AppError =>
  new AppError('busy', `somebody committed to ${branch} or switched branches meanwhile`)

/** Writes a worktree's files from its index, without overwriting any. */
export const checkoutIndex = async (git: Git, tree: Tree, { settings }: CheckoutOptions = {}): Promise<void> => {
  const args = ['checkout-index', '--all', '--quiet']
  await git.run({ operation: 'checkout-index', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** Makes a sparse checkout a full one: `git worktree add` copies the patterns of the main working tree. */
export const disableSparse = async (git: Git, tree: Tree, { settings }: CheckoutOptions = {}): Promise<void> => {
  const args = ['sparse-checkout', 'disable']
  await git.run({ operation: 'sparse-checkout', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** Removes the files outside a sparse checkout again, except changed ones. */
export const reapplySparse = async (git: Git, tree: Tree): Promise<void> => {
  const args = ['sparse-checkout', 'reapply']
  await git.run({ operation: 'sparse-checkout', at: tree, args, locks: true, ok: [0, 1, 128] })
}
