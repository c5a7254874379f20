import { BoundedMap } from '../domain/bounded-map.ts'
import { type Dirent, lstatSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError, UnusableFileError } from '../domain/errors.ts'
import { maxLineBytes } from '../domain/git-link.ts'
import { isMissing } from '../domain/missing.ts'
import { rawBytes, shownPath, toRaw } from '../domain/raw-path.ts'
import { shellWord } from '../domain/shell-word.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { isPipeOrDevice, kindOf, readUntrustedSync } from '../process/files/read-untrusted.ts'
import { createTimeSlice, type TimeSlice } from '../process/time-slice.ts'
import { maxConfigBytes, maxIndexBytes, maxLogBytes, maxOtherBytes, maxPackedRefsBytes } from './file-limits.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

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
  /** Everything, now, because git is slow to answer; until it has answered. */
  readonly untilAnswered?: () => boolean
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
const maxEntries = 2_000_000
/** Tools that share a git directory make some 20. Each is followed before every start, which can take 4 ms. */
const maxLinks = 1_000
/** A look takes milliseconds; the first one at a large repository on a cold disk, seconds. */
const maxLookMs = 10_000

export const createInspector = (createSlice = createTimeSlice): Inspector => {
  const known = new BoundedMap<string, Listing>(capacity)
  const lastThorough = new BoundedMap<string, { at: number; took: number }>(1_000)

  const listingOf = async (path: string, stat: Stats, slice: TimeSlice): Promise<Listing | undefined> => {
    const hit = known.get(path)
    if (hit !== undefined && isSame(hit.stat, stat)) return hit
    const listing = await list(path, stat, slice)
    known.delete(path)
    // Two changes within one tick of the kernel's clock look like one: a young listing is not remembered.
    if (listing !== undefined && wallClock() - stat.ctimeMs > freshMs) known.set(path, listing)
    return listing
  }

  const inspect = async (places: Places): Promise<void> => {
    const { modules = false, untilAnswered } = places
    const thorough = untilAnswered !== undefined
    const gitDirs = places.gitDirs.map((path) => toRaw(Buffer.from(path)))
    const began = performance.now()
    const key = gitDirs.join('\0')
    const last = lastThorough.get(key)
    // Loose objects and the records of other worktrees are most of the directories, and hardly ever what git waits for.
    const everything = thorough || last === undefined || began - last.at > Math.max(pauseMs, last.took * 20)
    // A git that is slow has a time limit of its own: it is not ended because looking takes long.
    const slice = createSlice(thorough ? undefined : { ms: maxLookMs, error: () => tookTooLong(places) })
    const seen = new Set<string>()
    const assertWithinLimits = limitsOfLook(places)
    const ahead: (readonly [path: string, kind: Kind])[] = gitDirs.map((path) => [path, 'git'])
    for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
      if (slice.isOver()) await slice.next()
      if (untilAnswered?.() === true) return
      const [path, kind] = next
      const stat = lookAt(path, statSync)
      // By identity: links can lead in circles, or a thousand of them to one large directory.
      const identity = `${stat?.dev}:${stat?.ino}`
      if (stat?.isDirectory() !== true || seen.has(identity)) continue
      seen.add(identity)
      const listing = await listingOf(path, stat, slice)
      if (listing === undefined) continue
      assertWithinLimits(path, listing)
      const isSized = thorough || gitDirs.includes(path) || kind === 'other' || (everything && kind === 'refs')
      if (isSized) await assertSizes(path, kind, listing.files, slice)
      for (const names of [listing.directories, await linkedDirectories(path, kind, listing.links, slice)]) {
        for (const name of names) {
          if (slice.isOver()) await slice.next()
          const inner = kindInside(kind, name, path, modules)
          if (inner === undefined || (!everything && isTail(kind, name, path, gitDirs))) continue
          ahead.push([`${path}/${name}`, inner])
        }
      }
      if (kind === 'objects' && basename(path) === 'info' && listing.files.includes('alternates')) {
        ahead.push(...alternatesOf(path).map((store) => [store, 'objects'] as const))
      }
    }
    if (everything) lastThorough.set(key, { at: performance.now(), took: performance.now() - began })
  }

  return { inspect }
}

/** Throws when the directories of one look hold more than any repository does. */
const limitsOfLook = ({ gitDirs }: Places): ((path: string, listing: Listing) => void) => {
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

/** How old a thorough look may be. What is missed meanwhile is found when git turns out to be slow. */
const pauseMs = 100
const freshMs = 50

/** The machine's own clock, which the kernel stamps directories with: not one that a test has set. */
const wallClock = (): number => performance.timeOrigin + performance.now()

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
    const stat = lookAt(link, statSync)
    if (stat === undefined) continue
    assertHarmless(link, stat)
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
    else assertHarmless(`${path}/${entry.name}`, entry)
  }
  return listing
}

/** Gone, or closed to git as well: git finds nothing to wait for. One that may be entered but not listed hides its files. */
const unlisted = (path: string, cause: unknown): undefined => {
  if (isMissing(cause) || lookAt(`${path}/.`, statSync) === undefined) return undefined
  throw new UnusableFileError(shownPath(path), 'cannot be listed, so git was not started', {
    cause,
    remedy: remedy`make it readable: ${shell(`chmod u+r ${shellWord(shownPath(path))}`)}`,
  })
}

/** Opening a socket fails at once, and so does a link that leads nowhere: git says what is wrong. */
export const assertHarmless = (raw: string, found: Parameters<typeof kindOf>[0]): void => {
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
    remedy: `find out what creates them (look in ${where}), remove those that do not belong there, and try again`,
  })

const tookTooLong = ({ gitDirs }: Places): AppError =>
  new AppError('unusable-file', `${gitDirs[0] ?? ''} could not be checked within ${maxLookMs / 1000} s`, {
    remedy: 'try again; if it keeps failing, remove files and links that do not belong in it, most likely under `refs`',
  })

/** Undefined when there is nothing, or nothing that we (and git) may look at. */
export const lookAt = (raw: string, look: typeof statSync): Stats | undefined => {
  try {
    return look(rawBytes(raw), { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
