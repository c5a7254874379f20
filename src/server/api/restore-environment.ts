import { environmentJson } from '../../commands/views/json.ts'
import { restoreWorktree } from '../../commands/worktree-restore.ts'
import { settleInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import { environmentAndCodebase } from './remove-environment.ts'

export const restoreEnvironment = async (
  { context: { isolation, provider, changes } }: ServerDeps,
  id: string,
): Promise<ReturnType<typeof environmentJson>> => {
  const { codebase } = await environmentAndCodebase(isolation, id)
  await settleInterrupted(isolation, codebase)
  const { environment } = await restoreWorktree({ context: isolation, provider, codebase }, id, '/')
  changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: environment.status })
  return environmentJson(environment, () => codebase.name)
}
