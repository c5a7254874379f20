import { BoundedMap } from '../domain/bounded-map.ts'
import { type BigIntStats, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../domain/clock.ts'
import { type ConfigEntry, isRepositoryScope } from './config-entries.ts'

/** A repository's configuration, cached until one of its files changes. */
export type ConfigCache = {
  read(dirs: ConfigDirs): Promise<readonly ConfigEntry[]>
}

/** Undefined outside a repository: only the user's own files. */
export type ConfigDirs = { readonly commonDir: string | undefined; readonly gitDir: string | undefined }

export type ConfigCacheOptions = {
  list: (dirs: ConfigDirs) => Promise<readonly ConfigEntry[]>
  /** The user's own files, including ones that don't exist yet: a new one must be noticed. */
  userFiles: readonly string[]
  now: Clock
}

type Known = { readonly entries: readonly ConfigEntry[]; readonly files: readonly string[]; readonly print: string }

/** Worktrees with their own configuration to remember; the oldest is dropped. */
const capacity = 1_000

export const createConfigCache = ({ list, userFiles, now }: ConfigCacheOptions): ConfigCache => {
  const known = new BoundedMap<string, Known>(capacity)
  const reading = new Map<string, Promise<readonly ConfigEntry[]>>()

  const readAgain = async (dirs: ConfigDirs, key: string): Promise<readonly ConfigEntry[]> => {
    const expected = [...userFiles, ...ownFiles(dirs)]
    const before = fingerprint(expected)
    const entries = await list(dirs)
    const files = [...new Set([...expected, ...originFiles(entries)])]
    const cacheable = before === fingerprint(expected) && !hasOwnIncludes(entries) && !isFresh(files, now())
    known.delete(key)
    if (cacheable) known.set(key, { entries, files, print: fingerprint(files) })
    return entries
  }

  return {
    read: async (asked) => {
      const dirs = sharedDirs(asked)
      const key = `${dirs.commonDir ?? ''}\0${dirs.gitDir ?? ''}`
      const hit = known.get(key)
      if (hit && hit.print === fingerprint(hit.files)) return hit.entries
      // A running read may have missed a write made just before this call. So a read is shared only by callers in the
      // same turn of the event loop, before it starts.
      const current = reading.get(key)
      if (current) return current
      const started = readAgain(dirs, key)
      reading.set(key, started)
      queueMicrotask(() => reading.delete(key))
      return started
    },
  }
}

/**
 * A worktree without its own configuration uses its repository's: fifty worktrees need one read.
 * (The user's `includeIf` may distinguish them, which only matters for values that the repository overrides.)
 */
const sharedDirs = (dirs: ConfigDirs): ConfigDirs => {
  if (dirs.gitDir === undefined || dirs.gitDir === dirs.commonDir) return dirs
  return statFile(join(dirs.gitDir, 'config.worktree')) === 'absent'
    ? { commonDir: dirs.commonDir, gitDir: dirs.commonDir }
    : dirs
}

export const ownFiles = ({ commonDir, gitDir }: ConfigDirs): string[] => [
  ...(commonDir === undefined ? [] : [join(commonDir, 'config')]),
  ...(gitDir === undefined ? [] : [join(gitDir, 'config.worktree')]),
]

const originFiles = (entries: readonly ConfigEntry[]): string[] =>
  entries.flatMap(({ origin }) => (origin.startsWith('file:') ? [origin.slice('file:'.length)] : []))

/** Never cached: an include may name a file that doesn't exist yet, or depend on the branch. */
const hasOwnIncludes = (entries: readonly ConfigEntry[]): boolean =>
  entries.some((entry) => isRepositoryScope(entry) && /^include(?:if)?\./.test(entry.key))

const fingerprint = (files: readonly string[]): string =>
  files
    .map((file) => {
      const stat = statFile(file)
      return typeof stat === 'string' ? stat : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`
    })
    .join('|')

/** Synchronous: a stat takes a few microseconds, through the thread pool a hundred. */
const statFile = (file: string): BigIntStats | 'absent' | 'unreadable' => {
  try {
    return statSync(file, { bigint: true, throwIfNoEntry: false }) ?? 'absent'
  } catch {
    return 'unreadable'
  }
}

/** ext4 timestamps have the kernel's tick (4 ms): two writes within one look the same. */
const freshMs = 50
const isFresh = (files: readonly string[], now: number): boolean =>
  files.some((file) => {
    const stat = statFile(file)
    return typeof stat !== 'string' && Math.abs(now - Number(stat.ctimeMs)) < freshMs
  })
