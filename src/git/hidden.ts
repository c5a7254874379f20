import { existsSync, lstatSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { copyUntrusted } from '../process/files/read-untrusted.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { type FileOnDisk, filesOnDisk, type IndexedFile, scanIndex } from './index-scan.ts'
import type { Setting } from './neutral.ts'
import { withPrivateIndex } from './private-index.ts'
import { joinTreePath, splitNul, treePath, type TreePath } from './tree-path.ts'

export type IndexState = {
  /** Edits hidden by `assume-unchanged` or `skip-worktree`, or made too soon after git's last check. */
  readonly hidden: readonly TreePath[]
  /** Paths of submodules, whether or not `.gitmodules` lists them. */
  readonly gitlinks: readonly TreePath[]
  /** Undefined when no file has `assume-unchanged` or `skip-worktree` set. */
  readonly flags: IndexFlags | undefined
  /** Undefined for an index in an unusual format. */
  readonly files: readonly FileOnDisk[] | undefined
}

export type IndexFlags = {
  /** Files with `skip-worktree` that exist anyway. Absent ones are normal: a sparse checkout has thousands. */
  readonly skippedButThere: readonly TreePath[]
}

/**
 * What `git status` doesn't show: edits of files with `assume-unchanged` or `skip-worktree`, compared in a private copy
 * of the index with the flags cleared (the worktree's own is not touched), and submodules.
 */
export const readIndexState = async (
  git: Git,
  tree: Tree,
  { signal }: CallOptions = {},
  scan = scanIndex(tree),
): Promise<IndexState> => {
  const files = scan && (await filesOnDisk(tree, scan))
  const young = (files?.filter((file) => file.isYoung) ?? []).map(({ bytes, mode, sha }) => ({
    ...treePath(bytes),
    mode: mode.toString(8),
    sha,
  }))
  const { flagged, gitlinks, flags } =
    scan?.hasFlags === false
      ? { flagged: [], gitlinks: scan.gitlinks, flags: undefined }
      : await askForFlags(git, tree, signal)
  if (flagged.length === 0 && young.length === 0) return { hidden: [], gitlinks, flags, files }
  const hidden = await withPrivateIndex(git, async (indexFile) => {
    await copyWithTime(join(tree.gitDir, 'index'), indexFile)
    return reallyDifferent(git, tree, indexFile, { flagged, young }, signal)
  })
  return { hidden, gitlinks, flags, files }
}

const askForFlags = async (
  git: Git,
  tree: Tree,
  signal: AbortSignal | undefined,
): Promise<Omit<IndexState, 'hidden' | 'files'> & { readonly flagged: readonly Flagged[] }> => {
  const entries = await indexEntries(git, tree, { signal })
  const skipped = await askForSkipped(git, tree)
  const hasFlags = skipped.length > 0 || entries.some((entry) => entry.flagged)
  const isThere = (entry: Flagged): boolean => !isAbsentFromSparse(tree, entry)
  return {
    flagged: entries.filter((entry) => entry.flagged && isThere(entry)),
    gitlinks: entries.filter(({ mode }) => mode === '160000'),
    flags: hasFlags ? { skippedButThere: skipped.filter(isThere) } : undefined,
  }
}

/** All files with `skip-worktree`. */
export const skippedFiles = async (git: Git, tree: Tree): Promise<Flagged[]> =>
  scanIndex(tree)?.hasFlags === false ? [] : askForSkipped(git, tree)

/** In a sparse checkout git ignores the flag of an existing file, unless told to expect such files. */
const askForSkipped = async (git: Git, tree: Tree): Promise<Flagged[]> => {
  const settings: readonly Setting[] = [['sparse.expectFilesOutsideOfPatterns', 'true']]
  return (await indexEntries(git, tree, { settings })).filter(({ skipWorktree }) => skipWorktree)
}

/**
 * Dates the copy slightly before the original. Git rereads a file of the same size and time only if it isn't older than
 * the index, so with a newer copy it would miss an edit made within one clock tick.
 */
const copyWithTime = async (from: string, to: string): Promise<void> => {
  const { atimeMs, mtimeMs } = statSync(from)
  await copyUntrusted(from, to)
  utimesSync(to, atimeMs / 1000, (mtimeMs - 1) / 1000)
}

type Flagged = TreePath & { readonly skipWorktree: boolean }
type Entry = Flagged & { readonly flagged: boolean; readonly mode: string }

/** `<tag> <mode> <sha> <stage> TAB path`: a lower-case tag means assume-unchanged, `S` or `s` skip-worktree. */
const indexEntries = async (
  git: Git,
  tree: Tree,
  { signal, settings = [] }: CallOptions & { settings?: readonly Setting[] },
): Promise<Entry[]> => {
  const args = ['ls-files', '-v', '--stage', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, settings, ...(signal && { signal }) })
  return splitNul(stdoutBytes).flatMap((record): Entry[] => {
    const tag = String.fromCharCode(record[0] ?? 0)
    const mode = record.toString('latin1', 2, 8)
    const skipWorktree = tag === 'S' || tag === 's'
    const flagged = skipWorktree || /[a-z]/.test(tag)
    // Almost none of 30,000 files is either: don't create objects for the rest.
    if (!flagged && mode !== '160000') return []
    return [{ ...treePath(record.subarray(record.indexOf(0x09) + 1)), skipWorktree, flagged, mode }]
  })
}

/** In a sparse checkout most files are flagged and absent on purpose: not a deletion. */
const isAbsentFromSparse = (tree: Tree, entry: Flagged): boolean =>
  entry.skipWorktree && !existsSync(joinTreePath(tree.path, entry)) && !isLink(joinTreePath(tree.path, entry))

const isLink = (path: Buffer): boolean => {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    // Missing, or its parent is now a file: it's only in the index.
    return false
  }
}

const reallyDifferent = async (
  git: Git,
  tree: Tree,
  indexFile: string,
  { flagged, young }: { readonly flagged: readonly Flagged[]; readonly young: readonly IndexedFile[] },
  signal: AbortSignal | undefined,
): Promise<TreePath[]> => {
  const stdin = Buffer.concat(flagged.flatMap(({ bytes }) => [bytes, Buffer.from('\0')]))
  const common = { at: tree, indexFile, ...(signal && { signal }) }
  // One flag at a time: given both, git 2.39 applies only the last.
  for (const flag of ['--no-assume-unchanged', '--no-skip-worktree']) {
    await git.run({
      ...common,
      operation: 'update-index',
      args: ['update-index', flag, '-z', '--stdin'],
      stdin,
      locks: true,
    })
  }
  // Without times in the index, git reads the file.
  const lines = young.flatMap(({ mode, sha, bytes }) => [Buffer.from(`${mode} ${sha}\t`), bytes, Buffer.from('\0')])
  const fresh = ['update-index', '-z', '--index-info']
  if (young.length > 0) {
    await git.run({ ...common, operation: 'update-index', args: fresh, stdin: Buffer.concat(lines), locks: true })
  }
  await git.run({
    ...common,
    operation: 'update-index',
    args: ['update-index', '-q', '--really-refresh'],
    ok: [0, 1],
    locks: true,
  })
  // Not `all`: that hides a file in place of a submodule.
  const args = ['diff-files', '-z', '--name-only', '--no-ext-diff', '--ignore-submodules=dirty']
  const { stdoutBytes } = await git.run({ ...common, operation: 'diff-files', args })
  const names = new Set([...flagged, ...young].map(({ bytes }) => bytes.toString('latin1')))
  return splitNul(stdoutBytes)
    .filter((bytes) => names.has(bytes.toString('latin1')))
    .map(treePath)
}
