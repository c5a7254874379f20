import { type BigIntStats, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { unlessMissingSync } from '../domain/missing.ts'
import { rawBytes, toRaw } from '../domain/text/raw-path.ts'
import { readUntrustedSync } from '../process/files/read-untrusted.ts'
import type { Tree } from './door.ts'
import { type TreePath, treePath } from './tree-path.ts'

export type IndexScan = {
  readonly bytes: Buffer
  /** An entry has assume-unchanged, skip-worktree or intent-to-add set: ask git which. */
  readonly hasFlags: boolean
  /** Paths of submodules. */
  readonly gitlinks: readonly TreePath[]
}

/**
 * Reads the index file itself: 5 ms for 30,000 entries, where `git ls-files` takes 45. Only the plain formats (version
 * 2 or 3, not split, not sparse); undefined for anything else: ask git.
 */
export const scanIndex = (tree: Tree): IndexScan | undefined => {
  const bytes = readUntrustedSync(join(tree.gitDir, 'index'), { maxBytes: maxScannedBytes })
  if (bytes === undefined) return undefined
  let hasFlags = false
  const gitlinks: TreePath[] = []
  const isPlain = isPlainIndex(bytes, (_at, flags, mode, nameAt, end) => {
    // The first bit is assume-unchanged; the second means that more flags follow, such as skip-worktree.
    if ((flags & 0xc000) !== 0) hasFlags = true
    if (isGitlink(mode)) gitlinks.push(treePath(bytes.subarray(nameAt, end)))
  })
  return isPlain ? { bytes, hasFlags, gitlinks } : undefined
}

/** Whether some path in the index may contain this text. Only the plain formats spell out every path. */
export const mayMention = (path: string, text: string): boolean => {
  try {
    const bytes = readUntrustedSync(path, { maxBytes: maxScannedBytes })
    return bytes === undefined || !isPlainIndex(bytes, () => undefined) || bytes.includes(text)
  } catch {
    return true
  }
}

/** Read and scanned in 50 ms: any longer would block everything else. */
const maxScannedBytes = 32 * 1024 * 1024

const headerBytes = 12
/** ctime, mtime, dev, ino: 24 bytes; then mode, uid, gid, size: 16; then the object id; then the flags. */
const modeAt = 24
const modifiedAt = 8
const sizeAt = 36
const idAt = 40
const idBytes = 20

/** False for unsupported formats, and for ids of another length, whose entries end past the end of the file. */
const isPlainIndex = (bytes: Buffer, take: TakeEntry): boolean => {
  try {
    const end = eachEntry(bytes, take)
    return end !== undefined && hasPlainExtensions(bytes, end)
  } catch {
    return false
  }
}

type ScannedEntry = {
  readonly at: number
  readonly flags: number
  readonly mode: number
  readonly nameAt: number
  readonly end: number
}

/** Takes the fields as arguments: an object for each of 30,000 entries would keep the garbage collector busy. */
type TakeEntry = (at: number, flags: number, mode: number, nameAt: number, end: number) => void

const isGitlink = (mode: number): boolean => (mode & 0xf000) === 0xe000

/** Where the entries end; undefined for an unsupported format. */
const eachEntry = (bytes: Buffer, take: TakeEntry): number | undefined => {
  const version = bytes.readUInt32BE(4)
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3)) return undefined
  let at = headerBytes
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const flags = bytes.readUInt16BE(at + idAt + idBytes)
    const nameAt = at + idAt + idBytes + ((flags & 0x4000) === 0 ? 2 : 4)
    const end = endOfName(bytes, nameAt, flags & maxNameLength)
    if (end === undefined) return undefined
    take(at, flags, bytes.readUInt32BE(at + modeAt), nameAt, end)
    // One to eight NULs pad each entry to a multiple of eight bytes.
    at += Math.ceil((end - at + 1) / 8) * 8
  }
  return at
}

/** The flags hold the length of the name, up to this. */
const maxNameLength = 0xfff

const endOfName = (bytes: Buffer, nameAt: number, length: number): number | undefined => {
  const end = length < maxNameLength ? nameAt + length : bytes.indexOf(0, nameAt)
  return end >= 0 && bytes[end] === 0 ? end : undefined
}

/** Every directory with a tracked file, including the tree's own. */
export const directoriesOf = (tree: Tree, { bytes }: IndexScan): readonly Buffer[] => {
  const found = new Set([''])
  let last = { at: 0, length: 0 }
  eachEntry(bytes, (_at, _flags, _mode, nameAt, end) => {
    const length = directoryLength(bytes, nameAt, end)
    // Sorted: the files of a directory follow each other.
    if (length === last.length && isSameText(bytes, nameAt, last.at, length)) return
    last = { at: nameAt, length }
    let path = bytes.toString('latin1', nameAt, nameAt + length)
    while (path !== '' && !found.has(path)) {
      found.add(path)
      path = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    }
  })
  const root = toRaw(Buffer.from(`${tree.path}/`))
  return [...found].map((path) => rawBytes(root + path))
}

/** Byte by byte: for 30,000 names, calls into Buffer would take ten times as long. */
const directoryLength = (bytes: Buffer, nameAt: number, end: number): number => {
  let at = end - 1
  while (at > nameAt && bytes[at] !== slash) at -= 1
  return Math.max(0, at - nameAt)
}

const isSameText = (bytes: Buffer, one: number, other: number, length: number): boolean => {
  for (let i = length - 1; i >= 0; i -= 1) if (bytes[one + i] !== bytes[other + i]) return false
  return true
}

const slash = 0x2f

/** Every tracked file and submodule. */
export const filesOf = (tree: Tree, { bytes }: IndexScan): readonly Buffer[] => {
  const root = Buffer.from(`${tree.path}/`)
  return allEntries(bytes).map(({ nameAt, end }) => Buffer.concat([root, bytes.subarray(nameAt, end)]))
}

export type IndexedFile = TreePath & { readonly mode: string; readonly sha: string }

/** A tracked file on disk. There may be 100,000, so only what most callers need is decoded. */
export type FileOnDisk = Pick<TreePath, 'bytes'> & {
  readonly mode: number
  readonly sha: string
  /** -1 if it's no longer a file. */
  readonly size: number
  /**
   * Changed in the same second in which git last checked it. Git compares whole seconds: if size and modification time
   * are the same (`cp -p`, `rsync -a`), it doesn't reread the file.
   */
  readonly isYoung: boolean
}

/** Every tracked file that exists. */
export const filesOnDisk = async (tree: Tree, { bytes }: IndexScan): Promise<FileOnDisk[]> => {
  const indexStat = lstatSync(join(tree.gitDir, 'index'), { throwIfNoEntry: false })
  if (indexStat === undefined) return []
  const written = Math.floor(indexStat.mtimeMs / 1000)
  const found: FileOnDisk[] = []
  const root = Buffer.from(`${tree.path}/`)
  for (const [i, { at, flags, mode, nameAt, end }] of allEntries(bytes).entries()) {
    if (i % 512 === 511) await nextTurn()
    if ((flags & 0x3000) !== 0 || isGitlink(mode)) continue
    const name = bytes.subarray(nameAt, end)
    const file = Buffer.concat([root, name])
    const stat = unlessMissingSync(() => lstatSync(file, { bigint: true, throwIfNoEntry: false }))
    if (stat === undefined) continue
    found.push({
      bytes: name,
      mode,
      sha: bytes.toString('hex', at + idAt, at + idAt + idBytes),
      size: stat.isFile() ? Number(stat.size) : -1,
      isYoung: isYoung(bytes, at, stat, written),
    })
  }
  return found
}

const isYoung = (bytes: Buffer, at: number, stat: BigIntStats, written: number): boolean => {
  if (Number((stat.ctimeNs / second) & 0xffffffffn) !== bytes.readUInt32BE(at)) return false
  if (Number(stat.ctimeNs % second) === bytes.readUInt32BE(at + 4)) return false
  // Git itself notices another time or size, and rereads a file as recent as its index.
  const modified = bytes.readUInt32BE(at + modifiedAt)
  if (Number((stat.mtimeNs / second) & 0xffffffffn) !== modified || modified >= written) return false
  return Number(stat.size & 0xffffffffn) === bytes.readUInt32BE(at + sizeAt)
}

const second = 1_000_000_000n

const allEntries = (bytes: Buffer): ScannedEntry[] => {
  const entries: ScannedEntry[] = []
  eachEntry(bytes, (at, flags, mode, nameAt, end) => void entries.push({ at, flags, mode, nameAt, end }))
  return entries
}

/** `link`: most entries are in another file. `sdir`: an entry may be a directory. SHA-256 ids don't match either. */
const hasPlainExtensions = (bytes: Buffer, from: number): boolean => {
  let at = from
  while (at < bytes.length - idBytes) {
    const name = bytes.toString('latin1', at, at + 4)
    if (!/^[A-Z]{4}$/.test(name)) return false
    at += 8 + bytes.readUInt32BE(at + 4)
  }
  return at === bytes.length - idBytes
}
