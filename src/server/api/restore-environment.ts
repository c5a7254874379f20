import { environmentJson } from '../../commands/json.ts'
import { AppError } from '../../domain/errors.ts'
import { workLabel } from '../../domain/work.ts'
import { recogniseFullDisk } from '../../isolation/disk-full.ts'
import { findRestorePoint } from '../../isolation/find.ts'
import { settleInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import { environmentAndCodebase } from './remove-environment.ts'

export const restoreEnvironment = async (
  { context }: ServerDeps,
  id: string,
): Promise<ReturnType<typeof environmentJson>> => {
  const { isolation, changes } = context
  const { codebase } = await environmentAndCodebase(isolation, id)
  await settleInterrupted(isolation, codebase)
  const find = () => findRestorePoint(isolation, codebase, id, '/')
  const point = await find()
  const { work, branch } = point.contents.environment
  const live = await isolation.store.environments.liveByWork(codebase.id, work)
  if (live !== undefined) {
    throw new AppError(
      'restore-failed',
      `${branch} is not restored: ${workLabel(work)} has an environment again, ${live.branch}`,
      {
        remedy: `remove that one first: DELETE /api/environments/${live.id}`,
      },
    )
  }
  const provider = await context.provider()
  const { environment } = await recogniseFullDisk(isolation.worktreesBase, () => provider.restore(point, find))
  changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: environment.status })
  return environmentJson(environment, () => codebase.name)
}
