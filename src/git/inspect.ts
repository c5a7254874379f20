import { lstatSync, readdirSync, type Dirent, type Stats, statSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../domain/errors.ts'
import { isMissing } from '../domain/missing.ts'
import { rawBytes, shownPath, toRaw } from '../domain/raw-path.ts'
import { kindOf, readUntrustedSync } from '../process/read-untrusted.ts'
import {
  maxConfigBytes,
  maxIndexBytes,
  maxLineBytes,
  maxLogBytes,
  maxOtherBytes,
  maxPackedRefsBytes,
} from './file-limits.ts'

/*
 * Git opens its own files whatever they are, and an agent can replace any of them: by a FIFO, for which git waits for
 * ever, or by a file without end. So the directories that git reads are looked at before it starts. A listing is kept
 * until its directory changes; what is left per start is one stat for each directory.
 */

export type Inspector = {
  /** Throws when git would wait for something in these directories, or read without end. */
  readonly inspect: (places: Places) => Promise<void>
}

export type Places = {
  readonly gitDirs: readonly string[]
  /** Also the git directories of submodules: a `submodule` command reads them. */
  readonly modules?: boolean
  /** All of it, now: git has been slow to answer. */
  readonly thorough?: boolean
}

/*
 * Paths are raw from here on (see domain/raw-path.ts): a ref's name need not be UTF-8, and a directory under a name that
 * cannot be spelt would not be looked at.
 */

/** What lies in a directory decides how large its files may be, and which of its directories git reads. */
type Kind = 'git' | 'worktrees' | 'modules' | 'refs' | 'logs' | 'objects' | 'other'

type Listing = {
  readonly stat: Stats
  readonly directories: readonly string[]
  /** Seen again every time: what a link leads to changes without the directory. */
  readonly links: readonly string[]
  readonly files: readonly string[]
}

/** A repository has about 300. */
const maxDirectories = 100_000
/** Directories remembered; the oldest go. */
const capacity = 2 * maxDirectories

export const createInspector = (): Inspector => {
  const known = new Map<string, Listing>()
  const lastThorough = new Map<string, { at: number; took: number }>()

  const listingOf = (path: string): Listing | undefined | Promise<Listing | undefined> => {
    const stat = lookAt(path, statSync)
    if (stat?.isDirectory() !== true) return undefined
    const hit = known.get(path)
    if (hit !== undefined && isSame(hit.stat, stat)) return hit
    const keep = (listing: Listing): Listing => {
      known.delete(path)
      // Two changes within one tick of the kernel's clock look like one: a young listing is not remembered.
      if (wallClock() - stat.ctimeMs > freshMs) known.set(path, listing)
      const oldest = known.size > capacity ? known.keys().next().value : undefined
      if (oldest !== undefined) known.delete(oldest)
      return listing
    }
    // A directory of a million names is read piece by piece: in one go it would hold up everything else.
    return stat.size > largeDirectoryBytes
      ? listSlowly(path, stat).then((listing) => listing && keep(listing))
      : keepIfThere(listAtOnce(path, stat), keep)
  }

  const inspect = async (places: Places): Promise<void> => {
    const { modules = false, thorough = false } = places
    const gitDirs = places.gitDirs.map((path) => toRaw(Buffer.from(path)))
    const began = performance.now()
    const key = gitDirs.join('\0')
    const last = lastThorough.get(key)
    // Loose objects and the records of other worktrees are most of the directories, and hardly ever what git waits for.
    const everything = thorough || last === undefined || began - last.at > Math.max(pauseMs, last.took * 20)
    const seen = new Set<string>()
    const ahead: (readonly [path: string, kind: Kind])[] = gitDirs.map((path) => [path, 'git'])
    for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
      const [path, kind] = next
      const found = listingOf(path)
      const listing = found instanceof Promise ? await found : found
      // By identity: links can lead in circles.
      const identity = listing && `${listing.stat.dev}:${listing.stat.ino}`
      if (identity === undefined || listing === undefined || seen.has(identity)) continue
      seen.add(identity)
      if (seen.size % directoriesPerTurn === 0) await nextTurn()
      if (seen.size > maxDirectories) throw tooMany(places.gitDirs[0] ?? '')
      const isSized = thorough || gitDirs.includes(path) || kind === 'other' || (everything && kind === 'refs')
      if (isSized) assertSizes(path, kind, listing.files)
      for (const name of [...listing.directories, ...linkedDirectories(path, kind, listing.links)]) {
        const inner = kindInside(kind, name, path, modules)
        if (inner === undefined || (!everything && isTail(kind, name, path, gitDirs))) continue
        ahead.push([`${path}/${name}`, inner])
      }
      if (kind === 'objects' && basename(path) === 'info' && listing.files.includes('alternates')) {
        ahead.push(...alternatesOf(path).map((store) => [store, 'objects'] as const))
      }
    }
    if (everything) remember(lastThorough, key, { at: performance.now(), took: performance.now() - began })
  }

  return { inspect }
}

/** How old a thorough look may be. What is missed meanwhile is found when git turns out to be slow. */
const pauseMs = 100
const directoriesPerTurn = 200
const freshMs = 50
const largeDirectoryBytes = 64 * 1024

/** The machine's own clock, which the kernel stamps directories with: not one that a test has set. */
const wallClock = (): number => performance.timeOrigin + performance.now()

const remember = <T>(map: Map<string, T>, key: string, value: T): void => {
  map.delete(key)
  map.set(key, value)
  const oldest = map.size > 1_000 ? map.keys().next().value : undefined
  if (oldest !== undefined) map.delete(oldest)
}

const keepIfThere = (listing: Listing | undefined, keep: (listing: Listing) => Listing): Listing | undefined =>
  listing && keep(listing)

const isSame = (a: Stats, b: Stats): boolean =>
  a.ctimeMs === b.ctimeMs && a.mtimeMs === b.mtimeMs && a.ino === b.ino && a.dev === b.dev

const readInside: Readonly<Record<string, Kind>> = {
  refs: 'refs',
  logs: 'logs',
  objects: 'objects',
  worktrees: 'worktrees',
  info: 'other',
  reftable: 'other',
  remotes: 'other',
  branches: 'other',
  'rebase-merge': 'other',
  'rebase-apply': 'other',
  sequencer: 'other',
}

const kindInside = (kind: Kind, name: string, path: string, modules: boolean): Kind | undefined => {
  if (kind === 'worktrees') return 'git'
  if (kind === 'git') return modules && name === 'modules' ? 'modules' : readInside[name]
  // A submodule's name may have slashes: then its git directory lies further down.
  if (kind === 'modules') return lookAt(`${path}/${name}/HEAD`, lstatSync) === undefined ? 'modules' : 'git'
  return kind
}

const isTail = (kind: Kind, name: string, path: string, gitDirs: readonly string[]): boolean =>
  (kind === 'objects' && /^[0-9a-f]{2}$/.test(name)) || (kind === 'worktrees' && !gitDirs.includes(`${path}/${name}`))

/** Those that git would follow into a directory. A link to something that git would wait for throws. */
const linkedDirectories = (path: string, kind: Kind, links: readonly string[]): string[] =>
  links.filter((name) => {
    const link = `${path}/${name}`
    const stat = lookAt(link, statSync)
    if (stat === undefined) return false
    assertHarmless(link, stat)
    if (stat.isFile()) assertSize(link, stat.size, limitOf(kind, name))
    return stat.isDirectory()
  })

const assertSizes = (path: string, kind: Kind, files: readonly string[]): void => {
  for (const name of files) {
    const limit = limitOf(kind, name)
    if (limit === undefined) continue
    const file = `${path}/${name}`
    assertSize(file, lookAt(file, lstatSync)?.size ?? 0, limit)
  }
}

const limitOf = (kind: Kind, name: string): number | undefined => {
  if (kind === 'refs') return maxLineBytes
  if (kind === 'logs') return maxLogBytes
  if (kind === 'objects') return name === 'alternates' ? maxLineBytes : undefined
  if (kind !== 'git') return maxOtherBytes
  if (name.startsWith('sharedindex.')) return maxIndexBytes
  // FETCH_HEAD, MERGE_MSG and their like. What other tools keep there is not read by git.
  return limits[name] ?? (/^[A-Z_]+$/.test(name) ? maxOtherBytes : undefined)
}

const limits: Readonly<Record<string, number>> = {
  HEAD: maxLineBytes,
  gitdir: maxLineBytes,
  commondir: maxLineBytes,
  config: maxConfigBytes,
  'config.worktree': maxConfigBytes,
  index: maxIndexBytes,
  shallow: maxOtherBytes,
  'packed-refs': maxPackedRefsBytes,
}

/** Where git looks for objects that this store lacks: one path a line, relative to `objects`. */
const alternatesOf = (info: string): string[] =>
  toRaw(readUntrustedSync(rawBytes(`${info}/alternates`), { maxBytes: maxLineBytes }) ?? Buffer.alloc(0))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('"'))
    .map((line) => resolve(dirname(info), line))

const listAtOnce = (path: string, stat: Stats): Listing | undefined => {
  let entries: Dirent[]
  try {
    entries = readdirSync(rawBytes(path), { withFileTypes: true, encoding: 'latin1' })
  } catch (error) {
    return unlisted(path, error)
  }
  return sorted(path, stat, entries)
}

const listSlowly = async (path: string, stat: Stats): Promise<Listing | undefined> => {
  const entries: Dirent[] = []
  try {
    const directory = await opendir(rawBytes(path), { bufferSize: 256, encoding: 'latin1' })
    for await (const entry of directory) entries.push(entry)
  } catch (error) {
    return unlisted(path, error)
  }
  return sorted(path, stat, entries)
}

/** Gone, or closed to git as well: git finds nothing to wait for. One that may be entered but not listed hides its files. */
const unlisted = (path: string, cause: unknown): undefined => {
  if (isMissing(cause) || lookAt(`${path}/.`, statSync) === undefined) return undefined
  throw new AppError('unusable-file', `${shownPath(path)} cannot be listed, so git was not started`, {
    cause,
    remedy: `make it readable: chmod u+r ${shownPath(path)}`,
  })
}

const sorted = (path: string, stat: Stats, entries: readonly Dirent[]): Listing => {
  const listing = { stat, directories: [] as string[], links: [] as string[], files: [] as string[] }
  for (const entry of entries) {
    if (entry.isFile()) listing.files.push(entry.name)
    else if (entry.isDirectory()) listing.directories.push(entry.name)
    else if (entry.isSymbolicLink()) listing.links.push(entry.name)
    else assertHarmless(`${path}/${entry.name}`, entry)
  }
  return listing
}

/** Opening a socket fails at once, and so does a link that leads nowhere: git says what is wrong. */
export const assertHarmless = (raw: string, found: Parameters<typeof kindOf>[0]): void => {
  if (!found.isFIFO() && !found.isCharacterDevice() && !found.isBlockDevice()) return
  const path = shownPath(raw)
  throw new AppError('unusable-file', `${path} is ${kindOf(found)}, which would block git`, {
    remedy: `remove it and try again, then run \`coppice doctor\``,
  })
}

export const assertSize = (raw: string, size: number, limit: number | undefined): void => {
  if (limit === undefined || size <= limit) return
  const path = shownPath(raw)
  throw new AppError('unusable-file', `${path} is too large for git to read: ${size} bytes (limit: ${limit})`, {
    remedy: `remove ${path} or put the right file back, and try again`,
  })
}

const tooMany = (gitDir: string): AppError =>
  new AppError('unusable-file', `${gitDir} has more than ${maxDirectories} directories, too many for git to read`, {
    remedy: 'remove them (most likely under `refs`) and find out what created them',
  })

/** Undefined when there is nothing, or nothing that we (and git) may look at. */
export const lookAt = (raw: string, look: typeof statSync): Stats | undefined => {
  try {
    return look(rawBytes(raw), { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
