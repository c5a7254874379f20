import { AppError } from '../../../domain/errors.ts'
import {
  type CreationData,
  readCreationData,
  readRestoreData,
  readSpareData,
  type RestoreData,
} from '../../../domain/journal-data.ts'
import type { Sha } from '../../../domain/names.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { lstat } from 'node:fs/promises'
import { unlessMissing } from '../../../domain/missing.ts'

/** Device and inode: a directory created later at the same path has a different inode. */
export const directoryNumber = async (path: string): Promise<string | undefined> => {
  const found = await unlessMissing(lstat(path, { bigint: true }))
  return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : undefined
}

/** From the journal: what an interrupted creation may leave. */
export type CreationRecord = {
  readonly path: string
  readonly leaf: string
  /** Only if created here. */
  readonly branch: string | undefined
  readonly start: Sha
  readonly adminNamesBefore: readonly string[]
  readonly spareId: string | undefined
  readonly spare: CreationData['spare']
  readonly ownBranch: RestoreData['ownBranch']
  readonly directory: string | undefined
  readonly trashedFrom: string | undefined
}

/** Throws if the entry doesn't match its schema: then we don't know what may be undone. */
export const readCreationRecord = (entry: JournalEntry): CreationRecord => {
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

const madeBy = ({ branch, branchCreated, ...data }: CreationData): Omit<CreationRecord, 'ownBranch'> => ({
  ...data,
  branch: branchCreated ? branch : undefined,
  spareId: undefined,
})

/** Whether the directory at the path is the one we created. */
export const isOurDirectory = async ({ directory, path }: CreationRecord): Promise<boolean> =>
  directory !== undefined && directory === (await directoryNumber(path))

/** Once the journal has one of these steps, every file of the checkout, or of the restore point, has been written. */
export const provisioning = 'provisioning'
export const finishing = 'finishing'
export const discarding = 'discarding'

export const hasLaidAll = ({ step }: JournalEntry): boolean =>
  step === provisioning || step === finishing || step === discarding
