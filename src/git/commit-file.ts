import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { commitTree, type NewCommit, showFile } from './objects.ts'
import { withPrivateIndex } from './private-index.ts'
import { recordFormat } from './record-format.ts'
import { readSymbolicRef, resolveCommit, updateRefs } from './refs.ts'
import { remedy, shell } from '../domain/remedy.ts'

export type FileCommit = {
  /** One file, from the top of the tree. */
  readonly path: string
  /** The file's next content, from the one that HEAD has. */
  readonly next: (before: Buffer | undefined) => Buffer
  readonly message: string
  readonly by: NewCommit['by']
  /** Asked of each commit that this one would follow: one that was made meanwhile may make this one needless. */
  readonly unless?: (head: Sha) => Promise<Sha | undefined>
}

export type CommittedFile = { readonly commit: Sha; readonly branch: string; readonly made: boolean }

/** As many commits of others as may come between before we give up. */
const TRIES = 5

/**
 * Adds one commit to the checked-out branch that changes one file and nothing else: what is staged stays staged, what
 * is edited stays edited, no hook runs. The branch moves only from where it was seen, so that of two who try the same
 * at once (a child of ours that outlived us among them) one succeeds and the other looks again.
 * The worktree's own index and file are not touched: `settleFile` brings them after it.
 */
export const commitFile = async (
  git: Git,
  tree: Tree,
  file: FileCommit,
  options: CallOptions = {},
): Promise<CommittedFile> => {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
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
  throw new AppError('busy', `the branch in ${tree.path} keeps moving, so no commit could be made on it`)
}

const noBranch = (tree: Tree): AppError =>
  new AppError('unsupported', `no branch with a commit is checked out in ${tree.path}`, {
    remedy: remedy`check out the worktree's branch again: ${shell('git switch <branch>')}`,
  })

/** Through a private index: the worktree's own may hold what somebody has staged. */
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
 * Lets the worktree's index have one file as a commit made by `commitFile` has it; false when it has another version
 * than the commit before, so that somebody has staged it: then it is left. Doing it twice is doing it once.
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

/** The last commits up to `head`, newest first, with what each says after this word in its last paragraph. */
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
