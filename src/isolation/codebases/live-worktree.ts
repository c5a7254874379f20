import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readWorktreeLinkSync, worktreePathSync } from '../../git/admin-dir.ts'

/**
 * A linked worktree that git still has a record of: somebody made it in the trash, moved it there, or made it in the
 * tree after the second check. Deleting it would lose its work and orphan its record. Not one whose record name another
 * worktree has by now.
 */
export const leaveLiveWorktree = (directory: Buffer): string | undefined => {
  try {
    const record = readWorktreeLinkSync(directory.toString())
    if (record === undefined || !existsSync(join(record, 'commondir'))) return undefined
    const place = worktreePathSync(record)
    const isAnothers = place !== undefined && place !== directory.toString() && readWorktreeLinkSync(place) === record
    return isAnothers ? undefined : 'a worktree of git'
  } catch (error) {
    // Unreadable isn't absent.
    return error instanceof Error ? error.message : String(error)
  }
}
