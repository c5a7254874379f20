import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { isAppError } from '../../../domain/errors.ts'
import {
  type AdminDir,
  clearLock,
  clearToken,
  readAdminDirs,
  readHead,
  readLock,
  readToken,
  readWorktreeLink,
} from '../../../git/admin-dir.ts'
import { maxLineBytes } from '../../../domain/git-link.ts'
import { trimEndOf } from '../../../domain/text/trim-end.ts'
import { gitProcessesUsing } from '../../../process/git-processes.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { creationReason, spareReason } from './lock-reasons.ts'
import { isOurDirectory, type CreationRecord } from '../checkout/creation-record.ts'
import { repoOf } from '../../codebases/repo-of.ts'

export const pathsOf = ({ path, spare }: CreationRecord): string[] => [
  path,
  ...(spare === undefined ? [] : [spare.path]),
]

/** Somebody moved it with git while it was being created: it is theirs now, with all its changes. */
export const wasTaken = async ({ dir, worktreePath }: AdminDir, ours: readonly string[]): Promise<boolean> =>
  worktreePath !== undefined && !ours.includes(worktreePath) && (await readWorktreeLink(worktreePath)) === dir

/** Removes our lock and token from a record, so that we never treat it as ours again. */
export const leaveToUser = async (dir: string): Promise<void> => {
  if ((await readLock(dir))?.startsWith('coppice: ') === true) await clearLock(dir)
  await clearToken(dir)
}

/** The record that this very operation made, recognised by its lock reason; or the spare it had taken. */
export const findRecord = async (
  codebase: Codebase,
  entry: JournalEntry,
  data: CreationRecord,
): Promise<AdminDir | undefined | 'cannot-tell'> => {
  const reasons = [
    ...(entry.environmentId === undefined ? [] : [creationReason(entry.environmentId)]),
    ...(data.spareId === undefined ? [] : [spareReason(data.spareId)]),
  ]
  const records = await readAdminDirs(repoOf(codebase).commonDir)
  for (const record of records) {
    if (record.lockReason !== undefined && reasons.includes(record.lockReason)) return record
    if (entry.environmentId !== undefined && (await readToken(record.dir)) === entry.environmentId) return record
    if (record.name === data.spare?.adminName) return record
    // Git removes its lock before it cleans up, and can be killed in between.
    const fresh = record.worktreePath === data.path && !data.adminNamesBefore.includes(record.name)
    if (fresh && (await isOurDirectory(data))) return record
  }
  // Killed after making the record's directory but not its reason: an empty record of our leaf's name.
  const unnamed = records.find(
    (record) =>
      record.worktreePath === undefined &&
      record.lockReason === undefined &&
      !data.adminNamesBefore.includes(record.name) &&
      trimEndOf(record.name, digits) === trimEndOf(data.leaf, digits),
  )
  if (unnamed === undefined) return undefined
  return (await isGitRunning(codebase)) ? 'cannot-tell' : unnamed
}

/** A git process that can't be inspected might be using the repository. */
const isGitRunning = async ({ repoPath }: Codebase): Promise<boolean> => {
  try {
    return (await gitProcessesUsing(repoPath)).length > 0
  } catch (error) {
    if (isAppError(error, 'unexpected')) return true
    throw error
  }
}

const digits = '0123456789'

/** Whether git's admin directory is complete. An incomplete one makes even `git rev-list` fail. */
export const isWholeRecord = async (dir: string): Promise<boolean> => {
  const read = (name: string): Promise<string | undefined> =>
    readUntrustedText(join(dir, name), { maxBytes: maxLineBytes })
  const [commondir, gitdir] = [await read('commondir'), await read('gitdir')]
  return commondir?.trim() === '../..' && /\/\.git\s*$/.test(gitdir ?? '') && (await readHead(dir)) !== undefined
}

/** The directory that was made, recognised by its inode or by its link to that record. */
export const findDirectory = async (admin: AdminDir | undefined, data: CreationRecord): Promise<string | undefined> => {
  if (await isOurDirectory(data)) return data.path
  if (admin === undefined) return undefined
  for (const path of pathsOf(data)) {
    if ((await readWorktreeLink(path)) === admin.dir) return path
    // Git died while writing the link: the record names the directory, and the link is the start of the right one.
    const link =
      admin.worktreePath === path ? await readUntrustedText(join(path, '.git'), { maxBytes: maxLineBytes }) : undefined
    if (link !== undefined && `gitdir: ${admin.dir}\n`.startsWith(link)) return path
  }
  return undefined
}
