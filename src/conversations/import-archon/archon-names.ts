import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import type { Work } from '../../domain/work.ts'
import { mapPath, type PathMap } from './path-map.ts'

/** The names that Archon gives a work's directory and branch. Later versions put `archon/` before them. */
export const archonNames = ({ type, id }: Work): string[] => {
  switch (type) {
    case 'issue':
      return [`issue-${id}`]
    case 'pr':
      return [`pr-${id}`, `pr-${id}-review`]
    case 'review':
      return [`review-${id}`, `pr-${id}-review`]
    case 'thread':
      return [`thread-${shortHash(id)}`]
    case 'task':
      return [`task-${archonSlug(id)}`]
    case 'agent':
      return []
  }
}

export const withoutPrefix = (name: string): string => name.replace(/^archon\//, '')

/** As in branch names, in Archon and here: the first 8 hex digits of sha256. */
export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Ours differs where letters are dropped or the text is long. */
const archonSlug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 50)

export type ArchonRoots = {
  /** Its home directory, in all the places where it may be. */
  readonly homes: readonly string[]
  /** Directories of the versions before it had one. */
  readonly bases: readonly string[]
}

export type RootSources = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The directory of its SQLite file: by default, that is its home. */
  readonly databaseDirectory: string | undefined
  readonly map: PathMap
}

/** A container's are `/.archon` and `/workspace`, whatever the variables say. */
export const archonRoots = ({ env, databaseDirectory, map }: RootSources): ArchonRoots => {
  const home = env['HOME'] ?? ''
  const expanded = (path: string): string => path.replace(/^~(?=\/|$)/, home)
  const named = env['ARCHON_HOME'] === undefined ? [] : [expanded(env['ARCHON_HOME'])]
  const found = databaseDirectory === undefined ? [] : [databaseDirectory]
  const real = (paths: readonly string[]): string[] => [
    ...new Set(paths.filter((path) => path.startsWith('/')).flatMap((path) => realOf(mapPath(map, path)) ?? [])),
  ]
  return {
    homes: real([...named, ...found, join(home, '.archon'), '/.archon']),
    bases: real([join(home, 'tmp', 'worktrees'), '/workspace/worktrees']),
  }
}

/**
 * What Archon called the worktree at this path, if it is in one of Archon's own directories. More than one where two
 * versions' layouts look alike.
 */
export const namesUnder = ({ homes, bases }: ArchonRoots, path: string): string[] =>
  [
    ...homes.flatMap((home) => {
      const [top, ...rest] = partsBelow(home, path)
      if (top === 'workspaces' && rest[2] === 'worktrees') return [rest.slice(3).join('/')]
      if (top === 'worktrees') return [rest.slice(2).join('/'), rest.slice(1).join('/')]
      return []
    }),
    ...bases.map((base) => partsBelow(base, path).slice(1).join('/')),
  ].filter((name) => name !== '')

const partsBelow = (root: string, path: string): string[] => {
  const way = relative(root, path)
  return way === '' || way.startsWith('..') ? [] : way.split(sep)
}

const realOf = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
