import { lstat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import type { Notice } from '../../../domain/notice.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { clearLock, readAdminDir, readLock, readToken, readWorktreeLink } from '../../../git/admin-dir.ts'
import { removeWorktreeRecord } from '../../../git/worktree-remove.ts'
import { pointRecordAtWorktree } from '../../../git/worktree-repair.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { withChild } from '../../children.ts'
import type { IsolationContext } from '../../context.ts'
import { readRemovalData, unreadableEntry } from '../../../domain/journal-data.ts'
import { areAllThere, recordFiles } from '../checkout/restore-point/record-files.ts'
import { removeStaleLocks } from './stale-locks.ts'

/** The point of no return: deletes git's record. Journaled, since git may outlive us. */
export const forgetRecord = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'failpoint'>,
  codebase: Codebase,
  entryId: string,
  adminDir: string,
): Promise<void> => {
  const lock = await readLock(adminDir)
  if (lock?.startsWith('coppice: ') === true) await clearLock(adminDir, lock)
  const files = await recordFiles(adminDir)
  await context.store.journal.advance(entryId, { step: 'forgetting', data: { files } })
  await context.failpoint('remove.forgetting')
  try {
    await withChild(context, entryId, {}, (onSpawn) =>
      removeWorktreeRecord(context.git, repoOf(codebase), { dir: adminDir }, { onSpawn }),
    )
  } catch (error) {
    // Git refused to start, for a reason: the removal is undone. Once it has started there is no way back.
    if (await areAllThere(adminDir, files)) throw error
    const entry = await context.store.journal.get(entryId)
    if (entry !== undefined) await deleteRest(context, entry, adminDir)
  }
}

/**
 * Git deletes the record file by file, and died half-way. Deletes the rest: the restore point has what was worth
 * keeping. A record of the same name that is now somebody else's stays.
 */
const deleteRest = async (
  context: Pick<IsolationContext, 'store'>,
  entry: JournalEntry,
  adminDir: string,
): Promise<void> => {
  const record = await readAdminDir(adminDir)
  const environment = entry.environmentId && (await context.store.environments.get(entry.environmentId))
  if (record === undefined || !environment) return
  const elsewhere = record.worktreePath !== undefined && record.worktreePath !== environment.path
  const token = await readToken(adminDir)
  const taken = (await unlessMissing(lstat(environment.path))) !== undefined
  if (elsewhere || taken || (token !== undefined && token !== environment.id)) return
  await deleteTree(adminDir)
}

/** The removal can be undone until git's record is gone. Finishes deleting a record that git started to delete. */
export const isForgotten = async (
  context: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  entry: JournalEntry,
): Promise<boolean> => {
  const adminDir = recordIn(codebase, entry)
  await removeStaleLocks(codebase, entry, { branch: await branchOf(context, entry), adminDir })
  const { files } = readRemovalData(entry)
  if (entry.step === 'forgetting' && files === undefined) throw unreadableEntry(entry, ['files'])
  const isForgetting = entry.step === 'forgetting' && adminDir !== undefined && files !== undefined
  if (isForgetting && !(await areAllThere(adminDir, files))) {
    await deleteRest(context, entry, adminDir)
    return true
  }
  return (await recordOf(codebase, entry)) === undefined && entry.step !== 'intent'
}

/** Git's record still names the old path if that was taken and the tree was put beside it. */
export const linkAgain = async (codebase: Codebase, entry: JournalEntry, path: string): Promise<void> => {
  const record = await recordOf(codebase, entry)
  const isLinked = record !== undefined && (await readWorktreeLink(path)) === record
  if (isLinked && (await readAdminDir(record))?.worktreePath !== path) pointRecordAtWorktree(record, path)
}

export const leftovers = async (codebase: Codebase, entry: JournalEntry): Promise<Notice[]> => {
  const record = await recordOf(codebase, entry)
  return record === undefined ? [] : [{ kind: 'record-still-there', record }]
}

const branchOf = async (
  context: Pick<IsolationContext, 'store'>,
  { environmentId }: JournalEntry,
): Promise<string | undefined> =>
  environmentId === undefined ? undefined : (await context.store.environments.get(environmentId))?.branch

/** Git's record, if it exists and still has this environment's token. */
const recordOf = async (codebase: Codebase, entry: JournalEntry): Promise<string | undefined> => {
  const adminDir = recordIn(codebase, entry)
  if (adminDir === undefined || (await readAdminDir(adminDir)) === undefined) return undefined
  return (await readToken(adminDir)) === entry.environmentId ? adminDir : undefined
}

/** By name: the repository may have been moved since. */
const recordIn = ({ repoPath }: Codebase, entry: JournalEntry): string | undefined => {
  const { adminDir } = readRemovalData(entry)
  return adminDir === undefined ? undefined : join(repoPath, 'worktrees', basename(adminDir))
}
