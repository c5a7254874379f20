import type { JournalEntry } from '../../../store/store.ts'
import { lstat } from 'node:fs/promises'
import { unlessMissing } from '../../../domain/missing.ts'
import { AppError } from '../../../domain/errors.ts'
import { resolveCommit, updateRefs } from '../../../git/refs.ts'
import type { IsolationContext } from '../../context.ts'
import type { Plan } from './plan.ts'

/** A local branch that is merely behind its pull request moves forward before it is checked out. */
export const moveForward = async (context: IsolationContext, plan: Plan): Promise<void> => {
  if (!plan.fastForward) return
  const { from, to } = plan.fastForward
  const moved = await updateRefs(context.git, plan.repo, [{ update: `refs/heads/${plan.branch}`, to, from }], {
    reason: 'coppice: fast-forward to the pull request',
  })
  // Done before, when a spare was tried first.
  if (!moved.ok && (await resolveCommit(context.git, plan.repo, `refs/heads/${plan.branch}`)) === to) return
  if (!moved.ok) throw new AppError('branch-in-use', `${plan.branch} moved while it was being brought up to date`)
}

/** Device and inode: a directory that somebody makes at the same path later has another number. */
export const directoryNumber = async (path: string): Promise<string | undefined> => {
  const found = await unlessMissing(lstat(path, { bigint: true }))
  return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : undefined
}

/** What the journal says an interrupted making may have left. */
export type MakingLeft = {
  path: string
  leaf: string
  branch: string
  branchCreated: boolean
  start: string
  adminNamesBefore: readonly string[]
  spareId: string | undefined
  spare: { path: string; adminName: string } | undefined
  /** A second branch that a restore brought back. */
  ownBranch: { name: string; tip: string } | undefined
  /** Which directory it was, whatever lies at the path now. */
  directory: string | undefined
}

export const readMakingData = ({ data }: JournalEntry): MakingLeft => ({
  path: text(data['path']),
  leaf: text(data['leaf']),
  branch: text(data['branch']),
  branchCreated: data['branchCreated'] === true,
  start: text(data['start']),
  adminNamesBefore: Array.isArray(data['adminNamesBefore']) ? data['adminNamesBefore'].map(text) : [],
  spareId: typeof data['spareId'] === 'string' ? data['spareId'] : undefined,
  spare: isRecord(data['spare'])
    ? { path: text(data['spare']['path']), adminName: text(data['spare']['adminName']) }
    : undefined,
  ownBranch: isRecord(data['ownBranch'])
    ? { name: text(data['ownBranch']['name']), tip: text(data['ownBranch']['tip']) }
    : undefined,
  directory: typeof data['directory'] === 'string' ? data['directory'] : undefined,
})

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** Whether the directory at the path is the one that was made. */
export const isOurDirectory = async ({ directory, path }: MakingLeft): Promise<boolean> =>
  directory !== undefined && directory === (await directoryNumber(path))
