import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import {
  type CreationData,
  readCreationData,
  readRestoreData,
  readSpareData,
  type RestoreData,
} from '../../domain/journal-data.ts'
import type { Sha } from '../../domain/names.ts'
import {
  type AdminDir,
  clearLock,
  clearToken,
  readAdminDirs,
  readHead,
  readLock,
  readToken,
  readWorktreeLink,
} from '../../git/admin-dir.ts'
import { maxLineBytes } from '../../domain/git-link.ts'
import { trimEndOf } from '../../domain/trim-end.ts'
import { gitProcessesUsing } from '../../process/git-processes.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../store/store.ts'
import { makingReason, spareReason } from './marks.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { repoOf } from '../repo-of.ts'

/** What the journal says an interrupted making may have left. */
export type MakingLeft = {
  readonly path: string
  readonly leaf: string
  /** Only if it was made here. */
  readonly branch: string | undefined
  readonly start: Sha
  readonly adminNamesBefore: readonly string[]
  readonly spareId: string | undefined
  readonly spare: CreationData['spare']
  readonly ownBranch: RestoreData['ownBranch']
  readonly directory: string | undefined
}

/** Throws when the entry is not as it was written: then nobody knows what may be taken back. */
export const readMakingData = (entry: JournalEntry): MakingLeft => {
  switch (entry.kind) {
    case 'create':
      return { ...madeBy(readCreationData(entry)), ownBranch: undefined }
    case 'restore': {
      const data = readRestoreData(entry)
      return { ...madeBy(data), ownBranch: data.ownBranch }
    }
    case 'spare': {
      const data = readSpareData(entry)
      return { ...data, branch: undefined, adminNamesBefore: [], spare: undefined, ownBranch: undefined }
    }
    case 'remove':
    case 'clone':
      throw new AppError('unexpected', `journal entry ${entry.id} (${entry.kind}) makes no worktree`)
  }
}

const madeBy = ({ branch, branchCreated, ...data }: CreationData): Omit<MakingLeft, 'ownBranch'> => ({
  ...data,
  branch: branchCreated ? branch : undefined,
  spareId: undefined,
})

export const pathsOf = ({ path, spare }: MakingLeft): string[] => [path, ...(spare === undefined ? [] : [spare.path])]

/** Somebody moved it with git while it was being made: it is theirs now, with whatever they did in it. */
export const wasTaken = async ({ dir, worktreePath }: AdminDir, ours: readonly string[]): Promise<boolean> =>
  worktreePath !== undefined && !ours.includes(worktreePath) && (await readWorktreeLink(worktreePath)) === dir

/** Takes our lock and our token off a record, so that nothing of ours ever counts it as its own again. */
export const leaveToUser = async (dir: string): Promise<void> => {
  if ((await readLock(dir))?.startsWith('coppice: ') === true) await clearLock(dir)
  await clearToken(dir)
}

/** Git's record that this very operation made, known by the reason in its lock; or the spare it had taken. */
export const findRecord = async (
  codebase: Codebase,
  entry: JournalEntry,
  data: MakingLeft,
): Promise<AdminDir | undefined | 'cannot-tell'> => {
  const reasons = [
    ...(entry.environmentId === undefined ? [] : [makingReason(entry.environmentId)]),
    ...(data.spareId === undefined ? [] : [spareReason(data.spareId)]),
  ]
  const records = await readAdminDirs(repoOf(codebase).commonDir)
  for (const record of records) {
    if (record.lockReason !== undefined && reasons.includes(record.lockReason)) return record
    if (entry.environmentId !== undefined && (await readToken(record.dir)) === entry.environmentId) return record
    if (record.name === data.spare?.adminName) return record
    // Git takes its lock away before it cleans up after itself, and can be killed in between.
    const fresh = record.worktreePath === data.path && !data.adminNamesBefore.includes(record.name)
    if (fresh && (await isOurDirectory(data))) return record
  }
  // Killed between making the record's directory and writing its reason: an empty record of our leaf's name.
  const unnamed = records.find(
    (record) =>
      record.worktreePath === undefined &&
      record.lockReason === undefined &&
      !data.adminNamesBefore.includes(record.name) &&
      trimEndOf(record.name, digits) === trimEndOf(data.leaf, digits),
  )
  if (unnamed === undefined) return undefined
  const others = await gitProcessesUsing(codebase.repoPath)
  return others.length > 0 ? 'cannot-tell' : unnamed
}

const digits = '0123456789'

/** Does git's record have all that makes it one? Over one that has not, even `git rev-list` in the repository dies. */
export const isWholeRecord = async (dir: string): Promise<boolean> => {
  const read = (name: string): Promise<string | undefined> =>
    readUntrustedText(join(dir, name), { maxBytes: maxLineBytes })
  const [commondir, gitdir] = [await read('commondir'), await read('gitdir')]
  return commondir?.trim() === '../..' && /\/\.git\s*$/.test(gitdir ?? '') && (await readHead(dir)) !== undefined
}

/** The directory that was made: known by its own number, or by its link to the record that was made. */
export const findDirectory = async (admin: AdminDir | undefined, data: MakingLeft): Promise<string | undefined> => {
  if (await isOurDirectory(data)) return data.path
  if (admin === undefined) return undefined
  for (const path of pathsOf(data)) {
    if ((await readWorktreeLink(path)) === admin.dir) return path
    // Git died while it wrote the link: the record names the directory, and the link is the beginning of the right one.
    const link =
      admin.worktreePath === path ? await readUntrustedText(join(path, '.git'), { maxBytes: maxLineBytes }) : undefined
    if (link !== undefined && `gitdir: ${admin.dir}\n`.startsWith(link)) return path
  }
  return undefined
}

const isOurDirectory = async ({ directory, path }: MakingLeft): Promise<boolean> =>
  directory !== undefined && directory === (await directoryNumber(path))

/** Device and inode: a directory that somebody makes at the same path later has another number. */
export const directoryNumber = async (path: string): Promise<string | undefined> => {
  const found = await unlessMissing(lstat(path, { bigint: true }))
  return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : undefined
}
