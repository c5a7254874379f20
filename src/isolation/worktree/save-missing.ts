import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { readAdminDir, readLock, readToken } from '../../git/admin-dir.ts'
import { settleOrAbandon } from '../abandon.ts'
import type { IsolationContext } from '../context.ts'
import { treeAt } from '../presence.ts'
import type { Removed, RemoveOptions } from '../provider.ts'
import type { BranchFate } from './fate.ts'
import { beginRemoval, finishRemoval, forgetRecord, settleRemoval } from './removal-steps.ts'
import { writeRestorePoint } from './restore-point.ts'

/**
 * Lets go of an environment whose directory is away. What git's record still knows (HEAD, index, reflog) is saved
 * first; the files, wherever they are, are not touched. The branch stays: nothing was looked at that could prove it.
 */
export const saveMissing = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  judged?: BranchFate,
  options: RemoveOptions = { trigger: 'command', why: 'its directory was missing, and a new worktree was created' },
): Promise<Removed> => {
  const lock = await foreignLock(codebase, environment)
  if (lock !== undefined) {
    throw new AppError('busy', `${environment.branch} is missing, and ${lockedBy(lock)}`, {
      remedy: `if whoever locked it is done: git -C ${codebase.checkoutPath ?? codebase.repoPath} worktree unlock ${environment.path}`,
    })
  }
  const missing = await asMissing(context, environment)
  const adminDir = await recordOf(codebase, missing)
  const fate: BranchFate = {
    merged: judged?.merged ?? { value: 'cannot-tell', detail: 'not asked' },
    tip: judged?.tip,
    goes: false,
    note: 'its directory is missing',
  }
  const entry = await beginRemoval(context, codebase, missing, { root: undefined, adminDir, fate, options })
  try {
    const point =
      adminDir === undefined
        ? undefined
        : await writeRestorePoint(context, {
            codebase,
            environment: missing,
            // Git needs a directory to stand in; its record alone is asked.
            tree: treeAt(codebase, adminDir, codebase.repoPath),
            dirt: undefined,
            fate,
            id: entry.id,
          })
    await context.store.journal.advance(entry.id, { step: 'saved' })
    await context.failpoint('remove.missing-saved')
    if (adminDir !== undefined) await forgetRecord(context, codebase, entry.id, adminDir)
    await context.failpoint('remove.missing-forgotten')
    const finished = await finishRemoval(context, codebase, entry.id)
    return {
      outcome: 'removed',
      environment: { ...missing, status: 'removed' },
      restorePoint: point,
      leftOut: [{ path: missing.path, reason: 'the directory was missing' }],
      ...finished,
    }
  } catch (error) {
    await settleOrAbandon(context, entry.id, () => settleRemoval(context, codebase, entry.id))
    throw error
  }
}

/** Somebody else's lock on git's record: they say that the directory comes back. */
export const foreignLock = async (
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<string | undefined> => {
  const adminDir = await recordOf(codebase, environment)
  const lock = adminDir === undefined ? undefined : await readLock(adminDir)
  return lock?.startsWith('coppice: ') === true ? undefined : lock
}

export const lockedBy = (lock: string): string => `locked by another tool${lock === '' ? '' : `: ${lock}`}`

const asMissing = async (context: IsolationContext, environment: IsolatedEnvironment): Promise<IsolatedEnvironment> => {
  if (environment.status === 'missing') return environment
  await context.store.environments.transition(environment.id, 'active', 'missing')
  return { ...environment, status: 'missing' }
}

/** Only a record that carries this environment's token is its record. */
const recordOf = async (
  codebase: Codebase,
  { adminName, id, owned }: IsolatedEnvironment,
): Promise<string | undefined> => {
  if (adminName === undefined || !owned) return undefined
  const dir = join(codebase.repoPath, 'worktrees', adminName)
  return (await readAdminDir(dir)) !== undefined && (await readToken(dir)) === id ? dir : undefined
}
