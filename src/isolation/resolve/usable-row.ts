import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError, IsolationBlockedError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import type { IsolationContext } from '../context.ts'
import { followMoves, movedNotice } from '../moved.ts'
import { presenceOf } from '../provider-of.ts'
import { waitForOperation } from '../wait-for-operation.ts'
import type { RequestWithOrigin } from './resolution.ts'

/** The current row, if the environment is there. Records `missing` or `active` if that changed. */
export const usableRow = async (
  context: IsolationContext,
  { codebase, signal, earlierNotices }: RequestWithOrigin,
  known: IsolatedEnvironment,
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await waitForOperation(context, codebase, known, {
    signal,
    tell: (notice) => earlierNotices.push(notice),
  })
  if (environment?.status !== 'active' && environment?.status !== 'missing') return undefined
  const { status, id, branch } = environment
  const presence = await presenceOf(context, codebase, environment)
  switch (presence.state) {
    case 'present':
      if (status === 'missing') await context.store.environments.transition(id, 'missing', 'active')
      return { ...environment, status: 'active' }
    case 'moved':
      earlierNotices.push(...(await followMoves(context, codebase)).map(movedNotice))
      return usableAfterMove(context, id)
    case 'missing':
      if (status === 'active') await context.store.environments.transition(id, 'active', 'missing')
      return undefined
    case 'not-ours':
    case 'cannot-tell':
      throw new IsolationBlockedError(`can't use the worktree of ${branch}: ${presence.detail}`, {
        remedy: remedy`run ${coppice('doctor')} for suggestions`,
      })
  }
}

const usableAfterMove = async (
  { store }: Pick<IsolationContext, 'store'>,
  id: IsolatedEnvironment['id'],
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await store.environments.get(id)
  return environment?.status === 'active' ? environment : undefined
}

/** Another work's environment that can't be used keeps no work from its own. */
export const unlessBlocked =
  ({ log }: Pick<IsolationContext, 'log'>) =>
  (error: unknown): undefined => {
    if (!isAppError(error, 'isolation-blocked')) throw error
    log.warn("another work's worktree could not be used", { error: error.message })
  }
