import { type Sha, isSha, toSha } from '../domain/names.ts'
import { rawBytes, toRaw } from '../domain/text/raw-path.ts'
import type { Git, Repo, Tree } from './door.ts'
import type { Setting } from './neutral.ts'
import { withPrivateIndex } from './private-index.ts'
import { splitNul } from './tree-path.ts'

/** An entry of a snapshot; a `blob` of undefined removes the path. Paths are raw. */
export type SnapshotEntry = {
  readonly path: string
  readonly blob: { readonly mode: string; readonly sha: Sha } | undefined
}

export type SnapshotPart = {
  /** A directory of the snapshot, such as `work`. */
  readonly name: string
  /** The tree or commit it starts from. */
  readonly from: Sha | undefined
  readonly entries: readonly SnapshotEntry[]
}

export type Snapshot = {
  readonly tree: Sha
  /** Names that git refuses to store (`.git `, `git~1`, `.Git/x`): it drops them silently, with exit code 0. */
  readonly refused: readonly string[]
}

/** Combines several trees into one through a private index: the worktree's own is not touched. Synced. */
export const writeSnapshot = (git: Git, tree: Tree, parts: readonly SnapshotPart[]): Promise<Snapshot> =>
  withPrivateIndex(git, (indexFile) => writeThrough(git, tree, indexFile, parts))

/** Sync the objects but not the index, which is temporary. Not `all,-index`: git 2.39 still syncs the index. */
const settings: readonly Setting[] = [['core.fsync', 'objects,derived-metadata,reference']]

const writeThrough = async (
  git: Git,
  tree: Tree,
  indexFile: string,
  parts: readonly SnapshotPart[],
): Promise<Snapshot> => {
  const common = { at: tree, indexFile, locks: true, durable: true, settings }
  for (const { name, from } of parts) {
    if (from === undefined) continue
    await git.run({
      ...common,
      operation: 'read-tree',
      args: ['read-tree', '-i', `--prefix=${name}/`, '--end-of-options', from],
    })
  }
  const known = parts.find(({ from }) => from !== undefined)?.from ?? (await emptyTree(git, tree))
  const zero = '0'.repeat(known.length)
  const lines = parts.flatMap(({ name, entries }) => entries.map((entry) => indexLine(name, entry, zero)))
  const args = ['update-index', '-z', '--index-info']
  await git.run({ ...common, operation: 'update-index', args, stdin: rawBytes(lines.join('')) })
  const { stdoutBytes } = await git.run({ ...common, operation: 'ls-files', args: ['ls-files', '-z'] })
  const held = new Set(splitNul(stdoutBytes).map(toRaw))
  const refused = parts.flatMap(({ name, entries }) =>
    entries.filter(({ path, blob }) => blob !== undefined && !held.has(`${name}/${path}`)).map(({ path }) => path),
  )
  const { stdout } = await git.run({ ...common, operation: 'write-tree', args: ['write-tree', '--missing-ok'] })
  return { tree: toSha(stdout.trim()), refused }
}

const indexLine = (name: string, { path, blob }: SnapshotEntry, zero: string): string =>
  blob === undefined ? `0 ${zero}\t${name}/${path}\0` : `${blob.mode} ${blob.sha}\t${name}/${path}\0`

const emptyTree = async (git: Git, tree: Tree): Promise<Sha> => {
  const args = ['hash-object', '-t', 'tree', '--stdin']
  const { stdout } = await git.run({ operation: 'hash-object', at: tree, args, stdin: '' })
  return toSha(stdout.trim())
}

export type IndexChange = SnapshotEntry & { readonly stage: number }

/** How the index differs from HEAD (or from nothing): staged changes, and every stage of unmerged files. */
export const indexChanges = async (git: Git, tree: Tree, from: Sha | undefined): Promise<IndexChange[]> => {
  // Without a commit, everything in the index is new.
  const head = from ?? (await emptyTree(git, tree))
  const staged = await git.run({
    operation: 'diff-index',
    at: tree,
    args: [
      'diff-index',
      '--cached',
      '--raw',
      '-z',
      '--no-renames',
      '--no-abbrev',
      '--ignore-submodules=none',
      head,
      '--',
    ],
  })
  const unmerged = await git.run({ operation: 'ls-files', at: tree, args: ['ls-files', '-u', '-z', '--full-name'] })
  return [...parseRaw(staged.stdoutBytes), ...parseStages(unmerged.stdoutBytes)]
}

/** `:oldmode newmode oldsha newsha status` NUL path NUL */
const parseRaw = (output: Buffer): IndexChange[] => {
  const parts = splitNul(output)
  const changes: IndexChange[] = []
  for (let i = 0; i + 1 < parts.length; i += 2) {
    const [, mode = '', , sha = '', status = ''] = (parts[i] ?? Buffer.alloc(0)).toString('latin1').split(' ')
    if (status.startsWith('U')) continue
    const gone = mode === '000000' || !isSha(sha) || /^0+$/.test(sha)
    changes.push({
      path: toRaw(parts[i + 1] ?? Buffer.alloc(0)),
      stage: 0,
      blob: gone ? undefined : { mode, sha: toSha(sha) },
    })
  }
  return changes
}

/** `mode sha stage` TAB path NUL */
const parseStages = (output: Buffer): IndexChange[] =>
  splitNul(output).map((record) => {
    const text = toRaw(record)
    const tab = text.indexOf('\t')
    const [mode = '', sha = '', stage = '0'] = text.slice(0, tab).split(' ')
    return { path: text.slice(tab + 1), stage: Number(stage), blob: { mode, sha: toSha(sha) } }
  })

/** The blobs of resolved conflicts, which the index keeps so they can be recreated. */
export const resolvedConflicts = async (git: Git, tree: Tree): Promise<Sha[]> => {
  const args = ['ls-files', '--resolve-undo', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args })
  return parseStages(stdoutBytes).flatMap(({ blob }) => (blob === undefined ? [] : [blob.sha]))
}

/** The commits among these ids that no branch, tag, remote-tracking ref or `except` reaches. One process. */
export const lostCommits = async (
  git: Git,
  repo: Repo,
  shas: readonly Sha[],
  except: readonly Sha[],
): Promise<Sha[]> => {
  if (shas.length === 0) return []
  const { stdout } = await git.run({
    operation: 'rev-list',
    at: { commonDir: repo.commonDir },
    // `--not` doesn't apply to revisions on stdin. --ignore-missing: a reflog outlives its objects.
    args: ['rev-list', '--ignore-missing', '--stdin', '--not', ...except, '--branches', '--tags', '--remotes'],
    stdin: `${shas.join('\n')}\n`,
  })
  const lost = new Set(stdout.split('\n'))
  return shas.filter((sha) => lost.has(sha))
}
