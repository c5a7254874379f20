import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { IsolationBlockedError } from '../../domain/errors.ts'
import type { Notice } from '../../domain/notice.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import type { IsolationContext } from '../context.ts'
import { followMoves } from '../moved.ts'
import { presenceOf, providerOf } from '../provider-of.ts'

export type Replaced =
  /** Its directory came back, so it is the environment. */
  | { readonly outcome: 'back'; readonly environment: IsolatedEnvironment }
  | { readonly outcome: 'forgotten'; readonly notices: readonly Notice[] }

/**
 * Call with the lock held. Makes way for another environment of the same work: what git still has of the missing one is
 * saved first, and its branch stays.
 */
export const replaceMissing = async (
  context: IsolationContext,
  codebase: Codebase,
  missing: IsolatedEnvironment,
): Promise<Replaced> => {
  if (await isBack(context, codebase, missing)) {
    const environment = (await context.store.environments.get(missing.id)) ?? missing
    return { outcome: 'back', environment: { ...environment, status: 'active' } }
  }
  // Another provider than the current one may have created it.
  const provider = await providerOf(context, missing)
  return { outcome: 'forgotten', notices: await provider.forgetMissing(context, codebase, missing) }
}

/** Checked again under the lock: a directory that came back is the environment; an unclear answer blocks. */
const isBack = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<boolean> => {
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state === 'missing') return false
  if (presence.state === 'moved') return (await followMoves(context, codebase)).length > 0
  if (presence.state === 'present') {
    return context.store.environments.transition(environment.id, 'missing', 'active')
  }
  throw new IsolationBlockedError(`can't use the worktree of ${environment.branch}: ${presence.detail}`, {
    remedy: remedy`run ${coppice('doctor')} for suggestions`,
  })
}
