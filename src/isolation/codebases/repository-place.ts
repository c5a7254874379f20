import { type BigIntStats, lstatSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { coppice, type Remedy, remedy } from '../../domain/remedy.ts'

/** Is a codebase's repository at its recorded path? Only *gone* means that it was deleted or moved. */
export type RepositoryState =
  | { readonly state: 'there' }
  | { readonly state: 'gone' }
  /** Its disk isn't mounted, or its directory is unreadable. */
  | { readonly state: 'unknown'; readonly detail: string }

type Placed = Pick<Codebase, 'id' | 'name' | 'repoPath' | 'checkoutPath' | 'repoInode'>

export const repositoryState = ({ repoPath, repoInode }: Pick<Placed, 'repoPath' | 'repoInode'>): RepositoryState => {
  try {
    if (statSync(repoPath, { throwIfNoEntry: false })?.isDirectory() === true) return { state: 'there' }
    const above = nearestAbove(repoPath)
    if (above.isSymbolicLink()) return { state: 'unknown', detail: 'a link is dangling; its disk may not be mounted' }
    const device = String(above.dev)
    const expected = repoInode?.split(':')[0]
    // Without a recorded device: if the parent is gone too, it may be on a disk that isn't mounted.
    const isGone =
      expected === undefined
        ? lstatSync(dirname(repoPath), { throwIfNoEntry: false }) !== undefined
        : expected === device
    return isGone ? { state: 'gone' } : { state: 'unknown', detail: 'its disk may not be mounted' }
  } catch (error) {
    if (isMissing(error)) return { state: 'gone' }
    return { state: 'unknown', detail: error instanceof Error ? error.message : String(error) }
  }
}

/** Called before git, so that every command reports a missing repository alike. */
export const assertRepository = (codebase: Placed): void => {
  const found = repositoryState(codebase)
  if (found.state !== 'there') throw repositoryGone(codebase, found)
}

export const repositoryGone = (codebase: Placed, found: Exclude<RepositoryState, { state: 'there' }>): AppError =>
  new AppError('repository-gone', describeGone(codebase, found), { remedy: goneRemedy(codebase, found) })

export const describeGone = (
  { id, name, repoPath, checkoutPath }: Placed,
  found: Exclude<RepositoryState, { state: 'there' }>,
): string => {
  const mark = replacedMark(id)
  if (repoPath.endsWith(mark)) {
    return `the repository of ${name} is gone: another one is at ${checkoutPath ?? repoPath.slice(0, -mark.length)} now`
  }
  return found.state === 'gone'
    ? `the repository of ${name} is gone: ${checkoutPath ?? repoPath} doesn't exist`
    : `the repository of ${name} can't be read at ${checkoutPath ?? repoPath}: ${found.detail}`
}

/** Recorded once another repository was moved to its path. */
export const replacedPath = ({ repoPath, id }: Pick<Codebase, 'repoPath' | 'id'>): string =>
  `${repoPath}${replacedMark(id)}`

const replacedMark = (id: string): string => `.was-${id.slice(0, 8)}`

export const goneRemedy = ({ name }: Placed, { state }: RepositoryState): Remedy =>
  state === 'gone'
    ? remedy`put it back, or tell Coppice where you moved it (${coppice('codebase add <new path>')}); to stop tracking it and keep the files of its worktrees: ${coppice(`codebase remove ${shellWord(name)}`)}`
    : remedy`mount its disk or make it readable, or tell Coppice where you moved it (${coppice(`codebase add <new path> --name ${shellWord(name)}`)}); if it is gone for good: ${coppice(`codebase remove ${shellWord(name)} --force`)}`

/**
 * The repository's real path. The recorded one has no links, so a different result means that it, or a directory above
 * it, was moved and a link left behind. Returns `path` if it can't be resolved.
 */
export const realPlace = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Device, inode and birth time of a git directory: a rename keeps them, a copy doesn't. */
export const inodeOf = (repoPath: string): string | undefined => {
  const found = lstatSync(repoPath, { bigint: true, throwIfNoEntry: false })
  return found?.isDirectory() === true ? `${found.dev}:${found.ino}:${birthOf(found)}` : undefined
}

/** A device number may change on reboot, so if the file system has birth times, inode and birth decide. */
export const isSameInode = (a: string | undefined, b: string | undefined): boolean => {
  if (a === undefined || b === undefined) return false
  const [, inodeA, birthA] = a.split(':')
  const [, inodeB, birthB] = b.split(':')
  return a === b || (birthA !== '0' && inodeA === inodeB && birthA === birthB)
}

const birthOf = ({ birthtimeNs }: BigIntStats): bigint => birthtimeNs

const nearestAbove = (path: string): BigIntStats =>
  lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? nearestAbove(dirname(path))
