import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { IsolationContext } from '../context.ts'
import { healthOf, presenceOf } from '../presence.ts'
import type { IsolationProvider } from '../provider.ts'
import { adoptWorktree } from './adopt.ts'
import { createEnvironment } from './create.ts'
import { removeEnvironment } from './remove.ts'
import { restoreEnvironment } from './restore.ts'

/** The first member of the seam: environments are linked worktrees of the codebase's own repository. */
export const createWorktreeProvider = (context: IsolationContext): IsolationProvider => {
  const codebaseOf = async (id: Codebase['id']): Promise<Codebase> => {
    const codebase = await context.store.codebases.get(id)
    if (codebase === undefined) throw new AppError('not-found', 'its repository is no longer registered')
    return codebase
  }
  return {
    name: 'worktree',
    create: (request) => createEnvironment(context, request),
    destroy: async (environment, options) =>
      removeEnvironment(context, await codebaseOf(environment.codebaseId), environment, options),
    restore: async (point, lookAgain) =>
      restoreEnvironment(context, await codebaseOf(point.codebaseId), point, lookAgain),
    get: (codebase, work) => context.store.environments.liveByWork(codebase.id, work),
    list: (codebase) => context.store.environments.live(codebase.id),
    adopt: (codebase, path, request) => adoptWorktree(context, codebase, path, request),
    healthCheck: async (codebase, environment) => healthOf(await presenceOf(codebase, environment)),
  }
}
