import { type Stats } from 'node:fs'
import { bytesBelow } from '../domain/text/raw-path.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { kindOf } from '../process/files/read-untrusted.ts'
import { createTimeSlice, type TimeSlice } from '../process/time-slice.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'

/** All paths are raw and relative to the top. */
export type Walk = {
  /**
   * Every entry called `.git` below the top. `git status` never lists them: a repository made in a tracked directory,
   * or files in a directory merely called `.git`, would be lost silently.
   */
  readonly gits: readonly { readonly path: string; readonly isDirectory: boolean }[]
  /**
   * Every directory that looks like git's own (`objects` and `refs`, `HEAD` or not), whatever its name: a bare
   * repository.
   */
  readonly gitDirectories: readonly string[]
  /** FIFOs, sockets and devices, at any depth. `git status` doesn't list them either, and nothing can save them. */
  readonly special: readonly Special[]
  /** When each directory last gained, lost or renamed an entry. */
  readonly directories: ReadonlyMap<string, string>
  /** A directory changed so recently that another change may have the same time. */
  readonly isFresh: boolean
}

export type Special = {
  readonly path: string
  /** `a FIFO`, `a socket`, … */
  readonly kind: string
}

/** File system clocks tick every 1 to 10 ms (FAT: 2 s, but worktrees aren't on FAT). */
const tickMs = 50

/**
 * All directories of a tree, at any depth: neither link counts (btrfs says 1 for every directory) nor names tell what
 * is inside. 100,000 files in 15,000 directories take about 300 ms; it yields often, so that git processes on the same
 * tree can start and be read meanwhile.
 */
export const walk = async (root: string, now: number, slice = createTimeSlice()): Promise<Walk> => {
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
    // Yield right away: git processes that look at the same tree start meanwhile.
    if (path === '' || slice.isOver()) await slice.next()
    const { names, inner, other } = await entriesThatMatter(at(root, path), found.size, slice)
    for (const { name, kind } of other) special.push({ path: path === '' ? name : `${path}/${name}`, kind })
    if (path !== '' && gitNames.every((name) => names.has(name))) gitDirectories.push(path)
    if (path !== '' && names.has('.git')) gits.push({ path: `${path}/.git`, isDirectory: inner.includes('.git') })
    for (const name of inner) {
      // A clone's git directory belongs to it; a worktree's is elsewhere.
      if (path !== '' || name !== '.git') await visit(path === '' ? name : `${path}/${name}`)
    }
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

const entriesThatMatter = async (path: Buffer, size: number, slice: TimeSlice): Promise<Listed> => {
  const names = new Set<string>()
  const inner: string[] = []
  const other: { name: string; kind: string }[] = []
  for (const entry of await listDirectory(path, { size, slice })) {
    if (slice.isOver()) await slice.next()
    if (namesThatMatter.has(entry.name)) names.add(entry.name)
    if (entry.isDirectory()) inner.push(entry.name)
    else if (!entry.isFile() && !entry.isSymbolicLink()) other.push({ name: entry.name, kind: kindOf(entry) })
  }
  return { names, inner, other }
}

/** No entry was added, removed or renamed in any of them since. Ignores writes to files. */
export const sameEntries = async (root: string, directories: ReadonlyMap<string, string>): Promise<boolean> => {
  const slice = createTimeSlice()
  for (const [path, stamp] of directories) {
    if (slice.isOver()) await slice.next()
    const found = directoryAt(root, path)
    if (found === undefined || stampOf(path, found) !== stamp) return false
  }
  return true
}

const at = (root: string, path: string): Buffer => (path === '' ? Buffer.from(root) : bytesBelow(root, path))

const directoryAt = (root: string, path: string): Stats | undefined => {
  const found = lstatIfThere(at(root, path))
  return found?.isDirectory() === true ? found : undefined
}

/** Renaming the tree changes only its own ctime. An mtime can be set back, a ctime can't. */
const stampOf = (path: string, { ino, mtimeMs, ctimeMs }: Stats): string =>
  path === '' ? `${ino},${mtimeMs}` : `${ino},${mtimeMs},${ctimeMs}`
