import { asProgram } from '../../commands/views/view.ts'
import { describeNotices } from '../../commands/views/notices.ts'
import { environmentJson } from '../../commands/views/json.ts'
import { restoreWorktree } from '../../commands/worktree-restore.ts'
import { recoverInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import { environmentAndCodebase } from './remove-environment.ts'

export const restoreEnvironment = async (
  { context: { isolation, environments, changes }, redact }: ServerDeps,
  id: string,
): Promise<ReturnType<typeof environmentJson> & { readonly notices: string[] }> => {
  const { codebase } = await environmentAndCodebase(isolation, id)
  const { settled, left } = await recoverInterrupted(isolation, codebase)
  const { environment, notices } = await restoreWorktree({ context: isolation, environments, codebase }, id, '/')
  changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: environment.status })
  return {
    ...environmentJson(environment, () => codebase.name),
    notices: describeNotices([...settled, ...left, ...notices], asProgram).map(redact),
  }
}
