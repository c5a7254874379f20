import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { commitTree, type NewCommit, showFile } from './objects.ts'
import { withPrivateIndex } from './private-index.ts'
import { recordFormat } from './record-format.ts'
import { readSymbolicRef, resolveCommit, updateRefs } from './refs.ts'
import { remedy, shell } from '../domain/remedy.ts'

export type FileCommit = {
  /** One file, relative to the top of the tree. */
  readonly path: string
  /** The file's new content, given HEAD's. */
  readonly next: (before: Buffer | undefined) => Buffer
  readonly message: string
  readonly by: NewCommit['by']
  /** Called with each HEAD before committing on it: a commit made meanwhile may make this one unnecessary. */
  readonly unless?: (head: Sha) => Promise<Sha | undefined>
}

export type CommittedFile = { readonly commit: Sha; readonly branch: string; readonly made: boolean }

/** Give up when others commit first this many times. */
const MAX_ATTEMPTS = 5

/**
 * Adds one commit to the checked-out branch that changes one file and nothing else: staged and unstaged edits stay, no
 * hook runs. The branch is updated with compare-and-swap, so when two processes try at once (one may be a child that
 * outlived us), one succeeds and the other retries.
 * The worktree's own index and file are not touched: the caller updates them afterwards.
 */
export const commitFile = async (
  git: Git,
  tree: Tree,
  file: FileCommit,
  options: CallOptions = {},
): Promise<CommittedFile> => {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const ref = await readSymbolicRef(git, tree, 'HEAD', options)
    const head = await resolveCommit(git, tree, 'HEAD', options)
    if (ref?.startsWith('refs/heads/') !== true || head === undefined) throw noBranch(tree)
    const branch = ref.slice('refs/heads/'.length)
    const known = await file.unless?.(head)
    if (known !== undefined) return { commit: known, branch, made: false }
    const commit = await nextCommit(git, tree, head, file, options)
    const moved = await updateRefs(git, tree, [{ update: ref, to: commit, from: head }], {
      reason: `commit: ${file.message.split('\n')[0] ?? ''}`,
      ...options,
    })
    if (moved.ok) return { commit, branch, made: true }
  }
  throw new AppError('busy', `couldn't commit in ${tree.path}: its branch keeps moving`)
}

const noBranch = (tree: Tree): AppError =>
  new AppError('unsupported', `no branch with a commit is checked out in ${tree.path}`, {
    remedy: remedy`check out the worktree's branch again: ${shell('git switch <branch>')}`,
  })

/** Uses a private index: the worktree's own may hold staged changes. */
const nextCommit = async (
  git: Git,
  tree: Tree,
  head: Sha,
  { path, next, message, by }: FileCommit,
  options: CallOptions,
): Promise<Sha> => {
  const blob = await writeBlob(git, tree, next(await showFile(git, tree, head, path, options)), options)
  return withPrivateIndex(git, async (indexFile) => {
    const common = { at: tree, indexFile, locks: true, ...signalOf(options) }
    await git.run({ ...common, operation: 'read-tree', args: ['read-tree', '--end-of-options', head] })
    await git.run({
      ...common,
      operation: 'update-index',
      args: ['update-index', '-z', '--index-info'],
      stdin: `100644 ${blob}\t${path}\0`,
    })
    const { stdout } = await git.run({ ...common, operation: 'write-tree', args: ['write-tree'] })
    return commitTree(git, tree, { tree: toSha(stdout.trim()), parents: [head], message, by }, options)
  })
}

const writeBlob = async (git: Git, tree: Tree, content: Buffer, options: CallOptions): Promise<Sha> => {
  const { stdout } = await git.run({
    operation: 'hash-object',
    at: tree,
    args: ['hash-object', '-w', '-t', 'blob', '--no-filters', '--stdin'],
    stdin: content,
    locks: true,
    ...signalOf(options),
  })
  return toSha(stdout.trim())
}

/**
 * Updates one file in the worktree's index to the version in a commit made by `commitFile`. False when the index has
 * neither that nor the previous version: someone staged it, so it's left alone. Idempotent.
 */
export const settleIndexEntry = async (
  git: Git,
  tree: Tree,
  commit: Sha,
  path: string,
  options: CallOptions = {},
): Promise<boolean> => {
  const [before, after, staged] = [
    await blobAt(git, tree, `${commit}^:${path}`, options),
    await blobAt(git, tree, `${commit}:${path}`, options),
    await blobAt(git, tree, `:${path}`, options),
  ]
  if (after === undefined || staged !== before) return staged === after
  await git.run({
    operation: 'update-index',
    at: tree,
    args: ['update-index', '-z', '--index-info'],
    stdin: `100644 ${after}\t${path}\0`,
    locks: true,
    ...signalOf(options),
  })
  return true
}

const blobAt = async (git: Git, tree: Tree, name: string, options: CallOptions): Promise<Sha | undefined> => {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', name]
  const call = { operation: 'rev-parse', at: tree, args, ok: [0, 1, 128], ...signalOf(options) }
  const { stdout, exitCode } = await git.run(call)
  return exitCode === 0 ? toSha(stdout.trim()) : undefined
}

export type TrailedCommit = { readonly commit: Sha; readonly values: readonly string[] }

/** The last commits up to `head`, newest first, each with its values of the trailer `word`. */
export const readTrailers = async (
  git: Git,
  tree: Tree,
  { head, word, limit }: { readonly head: Sha; readonly word: string; readonly limit: number },
  options: CallOptions = {},
): Promise<TrailedCommit[]> => {
  const format = recordFormat({ commit: '%H', values: `%(trailers:key=${word},valueonly)` }, '%x00')
  const { stdout } = await git.run({
    operation: 'log',
    at: tree,
    args: ['log', `--max-count=${limit}`, '--no-show-signature', `--format=${format.format}`, head, '--'],
    ...signalOf(options),
  })
  return format.parse(stdout).map(({ commit, values }) => ({
    commit: toSha(commit),
    values: values.split('\n').filter((value) => value !== ''),
  }))
}

const signalOf = ({ signal }: CallOptions) => (signal === undefined ? {} : { signal })
