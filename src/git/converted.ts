import { lstatSync } from 'node:fs'
import { unlessMissingSync } from '../domain/missing.ts'
import { type Sha, toSha } from '../domain/names.ts'
import { toRaw } from '../domain/raw-path.ts'
import { createTimeSlice } from '../process/time-slice.ts'
import { fitsOnLine } from './blobs.ts'
import { isRepositoryScope } from './config-entries.ts'
import type { Git, Tree } from './door.ts'
import type { FileOnDisk } from './index-scan.ts'
import { joinTreePath, splitNul } from './tree-path.ts'

export type ConvertedFile = Omit<FileOnDisk, 'isYoung'>

/** Another index than the tree's own. */
export type PrivateIndex = { readonly indexFile?: string }

/**
 * Tracked files whose bytes on disk are not those of their blob. Git may call them clean: a filter (nbstripout), line
 * ends, an encoding or `$Id$` stands between, by whatever attributes and configuration were in force when they were
 * written. So none of those is asked: sizes are compared, and the bytes themselves where a conversion may keep the size.
 * Line ends and `$Id$` never do. With 30,000 files the sizes take 30 ms, all bytes would take 500.
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

/** `mode sha stage` TAB path NUL. What is unmerged is a change in any case. */
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
    const stat = unlessMissingSync(() => lstatSync(joinTreePath(tree.path, { bytes })))
    if (stage === '0' && stat?.isFile() === true)
      found.push({ bytes, mode: Number.parseInt(mode, 8), sha, size: stat.size })
  }
  return found
}

/** The blobs of these files (raw paths) in the index, as far as they are at most so large. */
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

/** In the order of the files; NaN for a blob that is not there, so that its file counts as different. */
const blobSizes = async (git: Git, tree: Tree, files: readonly ConvertedFile[]): Promise<number[]> => {
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: tree,
    args: ['cat-file', '--batch-check=%(objectsize)'],
    stdin: files.map(({ sha }) => `${sha}\n`).join(''),
  })
  // "<id> missing" otherwise, which is no number.
  return stdout.split('\n').map(Number)
}

/**
 * Files whose conversion may keep the size: those with a filter or an encoding. Where the repository's configuration
 * names filters or a file of attributes, which git does not use for us but does for others, all of them.
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
  const named = new Set<string>()
  for (const attribute of ['filter', 'working-tree-encoding']) {
    const args = ['ls-files', '-z', '--full-name', '--', '.', `:(exclude,attr:!${attribute})`]
    const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...index })
    for (const bytes of splitNul(stdoutBytes)) named.add(toRaw(bytes))
  }
  return named.size === 0 ? undefined : ({ bytes }) => named.has(toRaw(bytes))
}

const withDifferentBytes = async (
  git: Git,
  tree: Tree,
  files: readonly ConvertedFile[],
): Promise<readonly ConvertedFile[]> => {
  // A name that `--stdin-paths` cannot read is rare enough to count as different.
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
