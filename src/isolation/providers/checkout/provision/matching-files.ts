import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  compileGlob,
  type Glob,
  globStart,
  type GlobState,
  globStep,
  isGlobMatch,
  mayMatchBelow,
} from '../../../../domain/glob.ts'

export type Match = {
  readonly path: string
  readonly kind: 'file' | 'link' | 'other'
  /** False for a name that isn't UTF-8: `path` is only for display and can't be opened. */
  readonly exact: boolean
}

/**
 * Files under `root` that match one of the globs; a matching directory includes everything in it. Not `fs.glob`: that
 * treats an unreadable directory as empty, which a removal gate must not. Links are reported, never followed; `.git` is
 * always left out.
 */
export const matchingFiles = async (
  root: string,
  patterns: readonly string[],
  unreadable: (directory: string, error: unknown) => void = rethrow,
): Promise<Match[]> => {
  const found: Match[] = []
  let looked = 0
  const walk = async (directory: string, ways: readonly Way[], whole: boolean): Promise<void> => {
    for (const entry of await entriesOf(root, directory, unreadable)) {
      // Don't block the event loop for a directory of 100,000 names.
      if ((looked += 1 + ways.length) > looksPerTurn) {
        looked = 0
        await nextTurn()
      }
      const name = entry.name.toString('utf8')
      if (name.toLowerCase() === '.git') continue
      const path = directory === '' ? name : `${directory}/${name}`
      const exact = Buffer.from(name, 'utf8').equals(entry.name)
      const next = whole ? [] : further(ways, name)
      const matches = whole || next.some(({ glob, state }) => isGlobMatch(glob, state))
      // Without this, `.env` would mean walking all of node_modules.
      const leadsOn = matches || next.some(({ glob, state }) => mayMatchBelow(glob, state))
      if (entry.isDirectory() && exact) {
        if (leadsOn) await walk(path, next, matches)
      } else if (matches || (entry.isDirectory() && leadsOn)) found.push({ path, kind: kindOf(entry), exact })
    }
  }
  if (patterns.length > 0) await walk('', beginnings(patterns), false)
  return found
}

/** Whether the globs match this path, directly or through a directory above it. */
export const isNamed = (path: string, patterns: readonly string[]): boolean => {
  let ways = beginnings(patterns)
  return path.split('/').some((name) => {
    ways = further(ways, name)
    return ways.some(({ glob, state }) => isGlobMatch(glob, state))
  })
}

/** A pattern, and how far the parent directories have matched it. */
type Way = { readonly glob: Glob; readonly state: GlobState }

const beginnings = (patterns: readonly string[]): Way[] =>
  patterns.map((pattern) => {
    const glob = compileGlob(pattern)
    return { glob, state: globStart(glob) }
  })

const further = (ways: readonly Way[], name: string): Way[] =>
  ways.map(({ glob, state }) => ({ glob, state: globStep(glob, state, name) })).filter(({ state }) => state.size > 0)

/** Names times patterns; the worst pattern on the longest name takes 0.1 ms. */
const looksPerTurn = 200

const entriesOf = async (
  root: string,
  directory: string,
  unreadable: (directory: string, error: unknown) => void,
): Promise<Dirent<Buffer>[]> => {
  try {
    return await readdir(join(root, directory), { withFileTypes: true, encoding: 'buffer' })
  } catch (error) {
    unreadable(directory, error)
    return []
  }
}

const kindOf = (entry: Dirent<Buffer>): Match['kind'] =>
  entry.isFile() ? 'file' : entry.isSymbolicLink() ? 'link' : 'other'

const rethrow = (_: string, error: unknown): never => {
  throw error
}
