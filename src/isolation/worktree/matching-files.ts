import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'

export type Match = {
  readonly path: string
  readonly kind: 'file' | 'link' | 'other'
  /** False for a name that is not UTF-8: `path` is only what it looks like, and cannot be opened. */
  readonly exact: boolean
}

/**
 * Files under `root` that one of the globs names; a directory that matches stands for all that is in it.
 * Not `fs.glob`: that takes a directory it may not read for an empty one, and a removal gate must not.
 * Links are reported, never followed; `.git` is left out wherever it lies.
 */
export const matchingFiles = async (
  root: string,
  patterns: readonly string[],
  unreadable: (directory: string, error: unknown) => void = rethrow,
): Promise<Match[]> => {
  const found: Match[] = []
  const walk = async (directory: string, whole: boolean): Promise<void> => {
    for (const entry of await entriesOf(root, directory, unreadable)) {
      const name = entry.name.toString('utf8')
      if (name.toLowerCase() === '.git') continue
      const path = directory === '' ? name : `${directory}/${name}`
      const exact = Buffer.from(name, 'utf8').equals(entry.name)
      const matches = whole || patterns.some((pattern) => posix.matchesGlob(path, pattern))
      if (entry.isDirectory() && exact) {
        if (matches || patterns.some((pattern) => mayLeadTo(path, pattern))) await walk(path, matches)
      } else if (matches || (entry.isDirectory() && patterns.some((pattern) => mayLeadTo(path, pattern)))) {
        found.push({ path, kind: kindOf(entry), exact })
      }
    }
  }
  if (patterns.length > 0) await walk('', false)
  return found
}

/** Whether the globs name this one path, by itself or through a directory above it. */
export const isNamed = (path: string, patterns: readonly string[]): boolean => {
  const parts = path.split('/')
  return parts.some((_, depth) => {
    const way = parts.slice(0, depth + 1).join('/')
    return patterns.some((pattern) => posix.matchesGlob(way, pattern))
  })
}

/** Without this, `.env` would cost a walk through all of node_modules. */
const mayLeadTo = (directory: string, pattern: string): boolean => {
  const wanted = pattern.split('/')
  const parts = directory.split('/')
  for (const [depth, part] of parts.entries()) {
    const segment = wanted[depth]
    if (segment === undefined) return false
    if (segment === '**') return true
    if (!posix.matchesGlob(part, segment)) return false
  }
  return wanted.length > parts.length
}

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
