import { type Dirent, type Stats, lstatSync, opendirSync, readdirSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { bytesBelow } from '../domain/raw-path.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import { kindOf } from '../process/read-untrusted.ts'

/** All paths are raw and relative to the top. */
export type Walk = {
  /**
   * Every entry called `.git` below the top. `git status` never speaks of them: a repository made in a tracked
   * directory, or files in a directory that is merely called `.git`, would go without a word.
   */
  readonly gits: readonly { readonly path: string; readonly isDirectory: boolean }[]
  /** Every directory that looks like git's own (`objects` and `refs`, with or without a `HEAD`), whatever its name: a bare repository. */
  readonly gitDirectories: readonly string[]
  /** FIFOs, sockets and devices, at any depth. `git status` never speaks of them either, and nothing can keep them. */
  readonly special: readonly Special[]
  /** When each directory last gained, lost or renamed an entry. */
  readonly directories: ReadonlyMap<string, string>
  /** A directory changed so recently that one more change would carry the same time. */
  readonly isFresh: boolean
}

export type Special = {
  readonly path: string
  /** `a FIFO`, `a socket`, … */
  readonly kind: string
}

/** The clocks of file systems tick every 1 to 10 ms; FAT's every 2 s does not matter where worktrees are. */
const tickMs = 50
/** About 5,000 names. Listing more at once would keep everything else waiting. */
const largeDirectoryBytes = 128 * 1024

/**
 * All directories of a tree, at any depth: neither link counts (btrfs says 1 for every directory) nor a directory's name
 * tell what is inside. 100,000 files in 15,000 directories take about 300 ms; it gives way all along, so that the git
 * processes that look at the same tree are started and heard meanwhile.
 */
export const walk = async (root: string, now: number): Promise<Walk> => {
  const gits: { path: string; isDirectory: boolean }[] = []
  const gitDirectories: string[] = []
  const special: Special[] = []
  const directories = new Map<string, string>()
  let isFresh = false
  const visit = async (path: string): Promise<void> => {
    const found = directoryAt(root, path)
    if (found === undefined) return
    directories.set(path, stampOf(path, found))
    isFresh ||= found.mtimeMs > now - tickMs
    if (directories.size % 64 === 1) await nextTurn()
    const { names, inner, other } = await listDirectory(root, path, found.size)
    for (const { name, kind } of other) special.push({ path: path === '' ? name : `${path}/${name}`, kind })
    if (path !== '' && gitNames.every((name) => names.has(name))) gitDirectories.push(path)
    if (path !== '' && names.has('.git')) gits.push({ path: `${path}/.git`, isDirectory: inner.includes('.git') })
    for (const name of inner) await visit(path === '' ? name : `${path}/${name}`)
  }
  await visit('')
  return { gits, gitDirectories, special, directories, isFresh }
}

const gitNames = ['objects', 'refs']
const namesThatMatter: ReadonlySet<string> = new Set(['.git', ...gitNames])

type Listed = {
  readonly names: ReadonlySet<string>
  readonly inner: readonly string[]
  readonly other: readonly { readonly name: string; readonly kind: string }[]
}

const listDirectory = async (root: string, path: string, size: number): Promise<Listed> => {
  const names = new Set<string>()
  const inner: string[] = []
  const other: { name: string; kind: string }[] = []
  const take = (entry: Dirent): void => {
    if (namesThatMatter.has(entry.name)) names.add(entry.name)
    if (entry.isDirectory()) inner.push(entry.name)
    else if (!entry.isFile() && !entry.isSymbolicLink()) other.push({ name: entry.name, kind: kindOf(entry) })
  }
  if (size <= largeDirectoryBytes) {
    for (const entry of readdirSync(at(root, path), { withFileTypes: true, encoding: 'latin1' })) take(entry)
    return { names, inner, other }
  }
  using directory = opendirSync(at(root, path), { encoding: 'latin1', bufferSize: 1024 })
  let seen = 0
  for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
    take(entry)
    seen += 1
    if (seen % 1024 === 0) await nextTurn()
  }
  return { names, inner, other }
}

/** No entry has come, gone or been renamed in any of them since. Not: no file was written to. */
export const sameEntries = async (root: string, directories: ReadonlyMap<string, string>): Promise<boolean> => {
  let looked = 0
  for (const [path, stamp] of directories) {
    const found = directoryAt(root, path)
    if (found === undefined || stampOf(path, found) !== stamp) return false
    looked += 1
    if (looked % 512 === 0) await nextTurn()
  }
  return true
}

const at = (root: string, path: string): Buffer => (path === '' ? Buffer.from(root) : bytesBelow(root, path))

const directoryAt = (root: string, path: string): Stats | undefined => {
  const found = unlessMissingSync(() => lstatSync(at(root, path)))
  return found?.isDirectory() === true ? found : undefined
}

/** A rename of the tree changes its own ctime, and no other directory's. An mtime can be set back, a ctime cannot. */
const stampOf = (path: string, { ino, mtimeMs, ctimeMs }: Stats): string =>
  path === '' ? `${ino},${mtimeMs}` : `${ino},${mtimeMs},${ctimeMs}`
