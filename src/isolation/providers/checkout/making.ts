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
