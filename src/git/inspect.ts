import { BoundedMap } from '../domain/bounded-map.ts'
import { type Dirent, lstatSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError, UnusableFileError } from '../domain/errors.ts'
import { maxLineBytes } from '../domain/git-link.ts'
import { isMissing } from '../domain/missing.ts'
import { rawBytes, shownPath, toRaw } from '../domain/text/raw-path.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { isPipeOrDevice, kindOf, readUntrustedSync } from '../process/files/read-untrusted.ts'
import { createTimeSlice, type TimeSlice } from '../process/time-slice.ts'
import { maxConfigBytes, maxIndexBytes, maxLogBytes, maxOtherBytes, maxPackedRefsBytes } from './file-limits.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

/*
 * An agent can replace any of git's own files by a FIFO, on which git blocks forever, or by an endless file. So inspect
 * the directories that git reads before it starts. Listings are cached until their directory changes, which leaves one
 * stat per directory and start.
 */

export type Inspector = {
  /** Throws when git would block on a file in these directories, or read forever. */
  readonly inspect: (request: InspectRequest) => Promise<void>
}

export type InspectRequest = {
  readonly gitDirs: readonly string[]
  /** Include the git directories of submodules, which `submodule` commands read. */
  readonly modules?: boolean
  /** Inspect everything because git is slow, until this returns true. */
  readonly untilAnswered?: () => boolean
}

/*
 * Paths are raw from here on (see domain/text/raw-path.ts): ref names needn't be UTF-8, and a decoded name could miss its
 * directory.
 */

/** Decides how large a directory's files may be, and which of its subdirectories git reads. */
type Kind = 'git' | 'worktrees' | 'modules' | 'refs' | 'logs' | 'objects' | 'other'

type Listing = {
  readonly stat: Stats
  readonly directories: readonly string[]
  /** Followed again every time: a link's target can change without the directory. */
  readonly links: readonly string[]
  readonly files: readonly string[]
}

/** A repository has about 300. */
const maxDirectories = 100_000
/** Directories to remember; the oldest are dropped. */
const capacity = 2 * maxDirectories
const maxEntries = 2_000_000
/** Tools that share a git directory create about 20. Following all of them can take 4 ms per start. */
const maxLinks = 1_000
/** Inspecting takes milliseconds; the first time, for a large repository on a cold disk, seconds. */
const maxInspectMs = 10_000

export const createInspector = (createSlice = createTimeSlice): Inspector => {
  const known = new BoundedMap<string, Listing>(capacity)
  const lastThorough = new BoundedMap<string, { at: number; took: number }>(1_000)

  const listingOf = async (path: string, stat: Stats, slice: TimeSlice): Promise<Listing | undefined> => {
    const hit = known.get(path)
    if (hit !== undefined && isSame(hit.stat, stat)) return hit
    const listing = await list(path, stat, slice)
    known.delete(path)
    // Two changes within one kernel tick look like one, so a fresh listing isn't cached.
    if (listing !== undefined && wallClock() - stat.ctimeMs > freshMs) known.set(path, listing)
    return listing
  }

  const inspect = async (request: InspectRequest): Promise<void> => {
    const { modules = false, untilAnswered } = request
    const thorough = untilAnswered !== undefined
    const gitDirs = request.gitDirs.map((path) => toRaw(Buffer.from(path)))
    const began = performance.now()
    // A repository's thorough inspection includes the records of all its worktrees: 50 of them don't need 50.
    const key = gitDirs.filter((dir) => !gitDirs.some((other) => dir.startsWith(`${other}/`))).join('\0')
    const last = lastThorough.get(key)
    // Most directories hold loose objects or other worktrees' records, which hardly ever block git.
    const everything = thorough || last === undefined || began - last.at > Math.max(thoroughMaxAgeMs, last.took * 20)
    // A slow git has its own time limit: don't stop it because inspecting takes long.
    const slice = createSlice(thorough ? undefined : { ms: maxInspectMs, error: () => tookTooLong(request) })
    const seen = new Set<string>()
    const assertWithinLimits = createLimitCheck(request)
    const pending: (readonly [path: string, kind: Kind])[] = gitDirs.map((path) => [path, 'git'])
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (slice.isOver()) await slice.next()
      if (untilAnswered?.() === true) return
      const [path, kind] = next
      const stat = tryStat(path, statSync)
      // By identity: links can form cycles, or a thousand can point to one large directory.
      const identity = `${stat?.dev}:${stat?.ino}`
      if (stat?.isDirectory() !== true || seen.has(identity)) continue
      seen.add(identity)
      const listing = await listingOf(path, stat, slice)
      if (listing === undefined) continue
      assertWithinLimits(path, listing)
      const checkSizes = thorough || gitDirs.includes(path) || kind === 'other' || (everything && kind === 'refs')
      if (checkSizes) await assertSizes(path, kind, listing.files, slice)
      for (const names of [listing.directories, await linkedDirectories(path, kind, listing.links, slice)]) {
        for (const name of names) {
          if (slice.isOver()) await slice.next()
          const inner = kindInside(kind, name, path, modules)
          if (inner === undefined || (!everything && isRarelyRelevant(kind, name, path, gitDirs))) continue
          pending.push([`${path}/${name}`, inner])
        }
      }
      if (kind === 'objects' && basename(path) === 'info' && listing.files.includes('alternates')) {
        pending.push(...alternatesOf(path).map((store) => [store, 'objects'] as const))
      }
    }
    if (everything) lastThorough.set(key, { at: performance.now(), took: performance.now() - began })
  }

  return { inspect }
}

/** Throws when the directories hold more than any real repository does. */
const createLimitCheck = ({ gitDirs }: InspectRequest): ((path: string, listing: Listing) => void) => {
  const found = { directories: 0, links: 0, entries: 0 }
  return (path, { directories, links, files }) => {
    found.directories += 1
    found.links += links.length
    found.entries += directories.length + links.length + files.length
    if (found.directories > maxDirectories) throw tooMany(gitDirs, `${maxDirectories} directories`, 'refs')
    if (found.links > maxLinks) throw tooMany(gitDirs, `${maxLinks} symbolic links`, shownPath(path))
    if (found.entries > maxEntries) throw tooMany(gitDirs, `${maxEntries} files`, shownPath(path))
  }
}

/** How old a thorough inspection may be. Anything missed meanwhile is found when git turns out to be slow. */
const thoroughMaxAgeMs = 1_000
/** Changes to one file within this time can have the same timestamp. */
export const freshMs = 50

/** The real clock, as in the kernel's timestamps, not one set by a test. */
export const wallClock = (): number => performance.timeOrigin + performance.now()

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
  // A submodule's name may contain slashes: then its git directory is further down.
  if (kind === 'modules') return tryStat(`${path}/${name}/HEAD`, lstatSync) === undefined ? 'modules' : 'git'
  return kind
}

const isRarelyRelevant = (kind: Kind, name: string, path: string, gitDirs: readonly string[]): boolean =>
  (kind === 'objects' && /^[0-9a-f]{2}$/.test(name)) || (kind === 'worktrees' && !gitDirs.includes(`${path}/${name}`))

/** Links to directories that git would follow. Throws for a link that would block git. */
const linkedDirectories = async (
  path: string,
  kind: Kind,
  links: readonly string[],
  slice: TimeSlice,
): Promise<string[]> => {
  const directories: string[] = []
  for (const name of links) {
    if (slice.isOver()) await slice.next()
    const link = `${path}/${name}`
    const stat = tryStat(link, statSync)
    if (stat === undefined) continue
    assertNotBlocking(link, stat)
    if (stat.isFile()) assertSize(link, stat.size, limitOf(kind, name))
    if (stat.isDirectory()) directories.push(name)
  }
  return directories
}

const assertSizes = async (path: string, kind: Kind, files: readonly string[], slice: TimeSlice): Promise<void> => {
  for (const name of files) {
    if (slice.isOver()) await slice.next()
    const limit = limitOf(kind, name)
    if (limit === undefined) continue
    const file = `${path}/${name}`
    assertSize(file, tryStat(file, lstatSync)?.size ?? 0, limit)
  }
}

const limitOf = (kind: Kind, name: string): number | undefined => {
  if (kind === 'refs') return maxLineBytes
  if (kind === 'logs') return maxLogBytes
  if (kind === 'objects') return name === 'alternates' ? maxLineBytes : undefined
  if (kind !== 'git') return maxOtherBytes
  if (name.startsWith('sharedindex.')) return maxIndexBytes
  // FETCH_HEAD, MERGE_MSG and the like. Git doesn't read other tools' files there.
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

/** Where git looks for objects that this store lacks: one path per line, relative to `objects`. */
const alternatesOf = (info: string): string[] =>
  toRaw(readUntrustedSync(rawBytes(`${info}/alternates`), { maxBytes: maxLineBytes }) ?? Buffer.alloc(0))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('"'))
    .map((line) => resolve(dirname(info), line))

const list = async (path: string, stat: Stats, slice: TimeSlice): Promise<Listing | undefined> => {
  let entries: Dirent[]
  try {
    entries = await listDirectory(rawBytes(path), { size: stat.size, slice, maxEntries })
  } catch (error) {
    if (error instanceof AppError) throw error
    return unlisted(path, error)
  }
  const listing = { stat, directories: [] as string[], links: [] as string[], files: [] as string[] }
  for (const entry of entries) {
    if (slice.isOver()) await slice.next()
    if (entry.isFile()) listing.files.push(entry.name)
    else if (entry.isDirectory()) listing.directories.push(entry.name)
    else if (entry.isSymbolicLink()) listing.links.push(entry.name)
    else assertNotBlocking(`${path}/${entry.name}`, entry)
  }
  return listing
}

/** A missing directory, or one closed to git too, can't block git. One that can only be entered hides its files. */
const unlisted = (path: string, cause: unknown): undefined => {
  if (isMissing(cause) || tryStat(`${path}/.`, statSync) === undefined) return undefined
  throw new UnusableFileError(shownPath(path), "can't be listed, so git was not started", {
    cause,
    remedy: remedy`make it readable: ${shell(`chmod u+r ${shellWord(shownPath(path))}`)}`,
  })
}

/** Sockets and dangling links are fine: opening them fails at once, and git reports it. */
export const assertNotBlocking = (raw: string, found: Parameters<typeof kindOf>[0]): void => {
  if (!isPipeOrDevice(found)) return
  const path = shownPath(raw)
  throw new UnusableFileError(path, `is ${kindOf(found)}, which would block git`, {
    holdsNothing: true,
    remedy: remedy`remove it and try again, then run ${coppice('doctor')}`,
  })
}

export const assertSize = (raw: string, size: number, limit: number | undefined): void => {
  if (limit === undefined || size <= limit) return
  const path = shownPath(raw)
  throw new UnusableFileError(path, `is too large for git to read: ${size} bytes (limit: ${limit})`, {
    remedy: `remove ${path} or put the right file back, and try again`,
  })
}

const tooMany = (gitDirs: readonly string[], what: string, where: string): AppError =>
  new AppError('unusable-file', `${gitDirs[0] ?? ''} has more than ${what}, too many to check before git starts`, {
    remedy: `find out what creates them (look in ${where}), remove those that don't belong there, and try again`,
  })

const tookTooLong = ({ gitDirs }: InspectRequest): AppError =>
  new AppError('unusable-file', `${gitDirs[0] ?? ''} could not be checked within ${maxInspectMs / 1000} s`, {
    remedy: "try again; if it keeps failing, remove files and links that don't belong in it, most likely under `refs`",
  })

/** Undefined when it doesn't exist, or we (and git) have no access. */
export const tryStat = (raw: string, look: typeof statSync): Stats | undefined => {
  try {
    return look(rawBytes(raw), { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
