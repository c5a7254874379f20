import { type Sha, toSha } from '../domain/names.ts'
import { toRaw } from '../domain/text/raw-path.ts'
import { createTimeSlice } from '../process/time-slice.ts'
import { fitsOnLine } from './blobs.ts'
import { isRepositoryScope } from './config-entries.ts'
import type { Git, Tree } from './door.ts'
import type { FileOnDisk } from './index-scan.ts'
import { joinTreePath, splitNul } from './tree-path.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'

export type ConvertedFile = Omit<FileOnDisk, 'isYoung'>

/** An index other than the tree's own. */
export type PrivateIndex = { readonly indexFile?: string }

/**
 * Tracked files whose bytes on disk differ from their blob. Git may call them clean: a filter (nbstripout), line-ending
 * conversion, an encoding or `$Id$` changed them, under attributes and configuration that may have changed since. So
 * this compares sizes, and bytes where a conversion may keep the size (line endings and `$Id$` never do). For 30,000
 * files sizes take 30 ms, all bytes would take 500.
 */
export const convertedFiles = async (
  git: Git,
  tree: Tree,
  { files: known, ...index }: PrivateIndex & { readonly files?: readonly FileOnDisk[] | undefined } = {},
): Promise<readonly ConvertedFile[]> => {
  const all: readonly ConvertedFile[] = known ?? (await listFiles(git, tree, index))
  const files = all.filter(({ mode, size }) => (mode & 0xf000) === 0x8000 && size >= 0)
  if (files.length === 0) return []
  const [sizes, suspects] = await Promise.all([blobSizes(git, tree, files), maybeSameSize(git, tree, index)])
  const different = files.filter((file, i) => sizes[i] !== file.size)
  const same = suspects === undefined ? [] : files.filter((file, i) => sizes[i] === file.size && suspects(file))
  return [...different, ...(await withDifferentBytes(git, tree, same))]
}

/** `mode sha stage` TAB path NUL. Unmerged files count as changed anyway. */
const listFiles = async (git: Git, tree: Tree, index: PrivateIndex = {}): Promise<ConvertedFile[]> => {
  const args = ['ls-files', '--stage', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...index })
  const slice = createTimeSlice()
  const found: ConvertedFile[] = []
  for (const record of splitNul(stdoutBytes)) {
    if (slice.isOver()) await slice.next()
    const tab = record.indexOf(0x09)
    const [mode = '', sha = '', stage = ''] = record.toString('latin1', 0, tab).split(' ')
    const bytes = record.subarray(tab + 1)
    const stat = lstatIfThere(joinTreePath(tree.path, { bytes }))
    if (stage === '0' && stat?.isFile() === true)
      found.push({ bytes, mode: Number.parseInt(mode, 8), sha, size: stat.size })
  }
  return found
}

/** The blobs of these files (raw paths) in the index, up to `maxBytes` each. */
export const blobsInIndex = async (
  git: Git,
  tree: Tree,
  paths: readonly string[],
  { maxBytes, ...index }: PrivateIndex & { readonly maxBytes: number },
): Promise<{ readonly path: string; readonly sha: Sha }[]> => {
  const wanted = new Set(paths)
  const files = (await listFiles(git, tree, index)).filter(({ bytes }) => wanted.has(toRaw(bytes)))
  const sizes = await blobSizes(git, tree, files)
  return files.flatMap(({ bytes, sha }, i) =>
    (sizes[i] ?? Number.NaN) <= maxBytes ? [{ path: toRaw(bytes), sha: toSha(sha) }] : [],
  )
}

/** In the order of the files; NaN for a missing blob, so its file counts as different. */
const blobSizes = async (git: Git, tree: Tree, files: readonly ConvertedFile[]): Promise<number[]> => {
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: tree,
    args: ['cat-file', '--batch-check=%(objectsize)'],
    stdin: files.map(({ sha }) => `${sha}\n`).join(''),
  })
  // A missing blob prints "<id> missing": NaN.
  return stdout.split('\n').map(Number)
}

/**
 * Files whose conversion may keep the size: those with a filter or an encoding. All files, if the repository's own
 * configuration names filters or an attributes file: our git ignores these, but the user's doesn't.
 */
const maybeSameSize = async (
  git: Git,
  tree: Tree,
  index: PrivateIndex,
): Promise<((file: ConvertedFile) => boolean) | undefined> => {
  const entries = await git.config(tree)
  const isUnknown = entries.some(
    (entry) =>
      /^filter\.(?!lfs\.)/.test(entry.key) || (entry.key === 'core.attributesfile' && isRepositoryScope(entry)),
  )
  if (isUnknown) return () => true
  // Excludes the files that have neither.
  const args = ['ls-files', '-z', '--full-name', '--', '.', ':(exclude,attr:!filter !working-tree-encoding)']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...index })
  const named = new Set(splitNul(stdoutBytes).map(toRaw))
  return named.size === 0 ? undefined : ({ bytes }) => named.has(toRaw(bytes))
}

const withDifferentBytes = async (
  git: Git,
  tree: Tree,
  files: readonly ConvertedFile[],
): Promise<readonly ConvertedFile[]> => {
  // Names that `--stdin-paths` can't read are rare: count them as different.
  const plain = files.filter(({ bytes }) => fitsOnLine(bytes))
  const odd = files.filter(({ bytes }) => !fitsOnLine(bytes))
  if (plain.length === 0) return odd
  const { stdout } = await git.run({
    operation: 'hash-object',
    at: tree,
    args: ['hash-object', '-t', 'blob', '--no-filters', '--stdin-paths'],
    stdin: Buffer.concat(plain.flatMap((file) => [joinTreePath(tree.path, file), Buffer.from('\n')])),
  })
  const shas = stdout.split('\n')
  return [...odd, ...plain.filter(({ sha }, i) => shas[i] !== sha)]
}
