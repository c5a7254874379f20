import { lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { linkedGitDirectory, maxLineBytes } from '../../domain/git-link.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { readAdminDir, readWorktreeLink } from '../../git/admin-dir.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { mapPath, type PathMap } from './path-map.ts'

export type WorktreeFound = {
  readonly real: string
  readonly branch: string
  /** Git's record of it. */
  readonly adminDir: string
  /** Record and directory name each other by the paths of another machine. */
  readonly relink: boolean
}

/**
 * This repository's linked worktree at a path, by git's records. Throws the reason if there is none. Adoption checks
 * much of this again under the lock; this check takes none, so that a dry run leaves no trace.
 */
export const worktreeAt = async (
  codebase: Codebase,
  given: string | undefined,
  map: PathMap,
): Promise<WorktreeFound> => {
  if (given === undefined || !given.startsWith('/') || given.includes('\0')) throw no("its path isn't absolute")
  const path = mapPath(map, given)
  const real = realOf(path)
  if (real === codebase.checkoutPath) throw no(`${path} is the main working tree of ${codebase.name}`)
  const linked = await readWorktreeLink(real)
  const adminDir = linked ?? (await mappedLink(real, map))
  if (adminDir === undefined || dirname(adminDir) !== join(codebase.repoPath, 'worktrees')) {
    throw no(`${path} is not a linked worktree of ${codebase.name}`)
  }
  const record = await readAdminDir(adminDir)
  // A copied `.git` file points at another directory's record.
  const recorded = record?.worktreePath
  if (record === undefined || recorded === undefined || !leadsTo(recorded, real, map)) {
    throw no(`git's record of ${path} points to another directory`)
  }
  const branch = record.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
  if (branch === undefined) throw no(`${path} has no branch checked out`)
  const problem = branchNameProblem(branch)
  if (problem !== undefined) throw no(`its branch can't be used: ${problem}`)
  // With a link in the way, both paths lead here; only with a map may git's files be changed.
  const relink = linked === undefined || isMissing(recorded) || (map.length > 0 && recorded !== real)
  return { real, branch, adminDir, relink }
}

/** The record that its `.git` file names by a path of another machine. */
const mappedLink = async (real: string, map: PathMap): Promise<string | undefined> => {
  const text = await readUntrustedText(join(real, '.git'), { maxBytes: maxLineBytes }).catch(() => undefined)
  const named = linkedGitDirectory(text)
  if (named === undefined || map.length === 0) return undefined
  const there = mapPath(map, resolve(real, named))
  return isMissing(there) ? undefined : join(realOf(dirname(there)), basename(there))
}

/** Or would, on this machine. A path that exists here too isn't another machine's. */
const leadsTo = (recorded: string, real: string, map: PathMap): boolean => {
  if (!isMissing(recorded)) return realOf(recorded) === real
  const there = mapPath(map, recorded)
  return there !== recorded && !isMissing(there) && realOf(there) === real
}

const isMissing = (path: string): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    // Not a directory on the way, or one that we can't read.
    return false
  }
}

const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') throw no(`${path} doesn't exist`)
    throw no(`couldn't read ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const no = (why: string): AppError => new AppError('not-adoptable', why)
