import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import type { Tree } from '../domain/tree.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { presenceOf } from '../isolation/provider-of.ts'

/**
 * The paths of the environment's files and git directory. Throws if it is missing, or another checkout is in its place.
 */
export const treeOf = async (
  context: Pick<IsolationContext, 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Tree> => {
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state === 'present') return presence.tree
  const why = presence.state === 'missing' ? `${environment.path} doesn't exist` : presence.detail
  throw new AppError('not-found', `can't use the worktree of ${environment.branch}: ${why}`, {
    remedy: remedy`run ${coppice('doctor')} for suggestions`,
  })
}
