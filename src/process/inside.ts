import type { Scan, ScanOptions, ProcessInside, UnreadableProcess } from './inside-scan.ts'
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import { scanDarwin } from './inside-darwin.ts'
import { scanLinux } from './inside-linux.ts'

export type ProcessesInside = {
  readonly inside: readonly ProcessInside[]
  readonly unreadable: readonly UnreadableProcess[]
}

export type InsideOptions = {
  /** Pids that do not count, such as that of a git we run there ourselves; asked as the scan goes on */
  readonly except?: { has(pid: number): boolean }
  /**
   * Whether files that are mapped into memory and no longer open count (a numpy memmap: what is written to it after
   * removal would be lost). They do, unless the answer is only for display: it is nearly half of the cost.
   */
  readonly mappings?: boolean
}

/**
 * Which processes use one of the directories: one pass for all of them. A process in two directories is listed for both,
 * once each, with the strongest reason. Throws when processes cannot be listed at all: that is "cannot tell".
 */
export const processesInside = async (
  dirs: readonly string[],
  options: InsideOptions = {},
): Promise<ProcessesInside> => {
  if (dirs.length === 0) return { inside: [], unreadable: [] }
  const { except } = options
  const places = await realPlaces(dirs)
  const within = commonStart([...places.keys()])
  const unreadable: UnreadableProcess[] = []
  const scans = scanAll({
    skip: (pid) => except?.has(pid) === true,
    mappings: options.mappings ?? true,
    within,
    unreadable: (process) => unreadable.push(process),
  })
  const inside: ProcessInside[] = []
  for await (const scan of scans) inside.push(...judge(scan, places, { within, enough: dirs.length }))
  return { inside, unreadable }
}

/** The directories, of those given, that the path is or lies in. */
export const placesOf = (path: string, places: ReadonlyMap<string, readonly string[]>): readonly string[] => {
  const found: string[] = []
  for (let at = path; ; at = dirname(at)) {
    found.push(...(places.get(at) ?? []))
    if (at === dirname(at)) return found
  }
}

/**
 * The kernel knows real paths only. A directory that is gone is taken at the place where it would be. Synchronous: the
 * first asynchronous call starts the threads that do them, which took 8 ms while git was busy on both cores.
 */
export const realPlace = async (path: string): Promise<string> => {
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || path === dirname(path)) throw error
    return join(await realPlace(dirname(path)), basename(path))
  }
}

const scanAll = (options: ScanOptions): Iterable<Scan> | AsyncIterable<Scan> => {
  if (process.platform === 'linux') return scanLinux(options)
  if (process.platform === 'darwin') return scanDarwin(options)
  throw new AppError('unsupported', `processes cannot be looked at on ${process.platform}`)
}

const realPlaces = async (dirs: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> => {
  const named = await Promise.all(dirs.map(async (dir) => [await realPlace(resolve(dir)), dir] as const))
  const places = new Map<string, string[]>()
  for (const [place, dir] of named) places.set(place, [...(places.get(place) ?? []), dir])
  return places
}

/** One comparison instead of one per directory: with 300 directories the pass took 165 ms without it, now 40. */
const commonStart = ([first = '', ...others]: readonly string[]): string => {
  let length = first.length
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1
  return first.slice(0, length)
}

const judge = (
  scan: Scan,
  places: ReadonlyMap<string, readonly string[]>,
  { within, enough }: { readonly within: string; readonly enough: number },
): readonly ProcessInside[] => {
  const found = new Map<string, ProcessInside>()
  for (const [how, link] of scan.links) {
    // also passes over pipe:[…], socket:[…] and anon_inode:…
    if (!link.startsWith(sep) || !link.startsWith(within)) continue
    for (const dir of namedPlaces(link, places)) {
      if (!found.has(dir)) found.set(dir, { dir, pid: scan.pid, command: scan.command(), how })
    }
    if (found.size >= enough) break
  }
  return [...found.values()]
}

const DELETED = ' (deleted)'

/** The kernel marks what was unlinked; a directory may also really be called so. Either reading counts. */
const namedPlaces = (link: string, places: ReadonlyMap<string, readonly string[]>): readonly string[] =>
  link.endsWith(DELETED)
    ? [...placesOf(link, places), ...placesOf(link.slice(0, -DELETED.length), places)]
    : placesOf(link, places)
