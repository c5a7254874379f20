import { environmentJson } from '../../commands/views/json.ts'
import { restoreWorktree } from '../../commands/worktree-restore.ts'
import { recoveryNotices, settleInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import { environmentAndCodebase } from './remove-environment.ts'

export const restoreEnvironment = async (
  { context: { isolation, provider, changes }, redact }: ServerDeps,
  id: string,
): Promise<ReturnType<typeof environmentJson> & { readonly notices: string[] }> => {
  const { codebase } = await environmentAndCodebase(isolation, id)
  const recovered = recoveryNotices(await settleInterrupted(isolation, codebase))
  const { environment, notices } = await restoreWorktree({ context: isolation, provider, codebase }, id, '/')
  changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: environment.status })
  return { ...environmentJson(environment, () => codebase.name), notices: [...recovered, ...notices].map(redact) }
}
