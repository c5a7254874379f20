import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { readAdminDir, readWorktreeLink } from '../../git/admin-dir.ts'

/**
 * This repository's linked worktree at a path, by git's records. Throws the reason if there is none. Adoption checks
 * much of this again under the lock; this check takes none, so that a dry run leaves no trace.
 */
export const worktreeAt = async (
  codebase: Codebase,
  path: string | undefined,
): Promise<{ readonly real: string; readonly branch: string }> => {
  if (path === undefined || !path.startsWith('/') || path.includes('\0')) throw no("its path isn't absolute")
  const real = realOf(path)
  if (real === codebase.checkoutPath) throw no(`${path} is the main working tree of ${codebase.name}`)
  const adminDir = await readWorktreeLink(real)
  if (adminDir === undefined || dirname(adminDir) !== join(codebase.repoPath, 'worktrees')) {
    throw no(`${path} is not a linked worktree of ${codebase.name}`)
  }
  const record = await readAdminDir(adminDir)
  // A copied `.git` file points at another directory's record.
  if (record?.worktreePath === undefined || realOf(record.worktreePath) !== real) {
    throw no(`git's record of ${path} points to another directory`)
  }
  const branch = record.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
  if (branch === undefined) throw no(`${path} has no branch checked out`)
  const problem = branchNameProblem(branch)
  if (problem !== undefined) throw no(`its branch can't be used: ${problem}`)
  return { real, branch }
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
