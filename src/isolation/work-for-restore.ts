import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { CodebaseId } from '../domain/names.ts'
import { sameWork, tasksOfBranch, type Work } from '../domain/work.ts'
import type { Store } from '../store/store.ts'

export type WorkForRestore =
  | { readonly work: Work; readonly linkedTo?: IsolatedEnvironment }
  /** The work has a new environment. */
  | { readonly live: IsolatedEnvironment }

/**
 * The work that a removed environment gets back. If it is found in another environment by a link, the restored one is a
 * task of its own; if another environment was made for it, there is nothing to give back.
 */
export const workForRestore = async (
  { environments }: Pick<Store, 'environments'>,
  codebaseId: CodebaseId,
  { id, work, branch }: IsolatedEnvironment,
): Promise<WorkForRestore> => {
  const live = await environments.liveByWork(codebaseId, work)
  if (live === undefined) return { work }
  if (sameWork(live.work, work)) return { live }
  for (const task of tasksOfBranch(branch, id)) {
    if ((await environments.liveByWork(codebaseId, task)) === undefined) return { work: task, linkedTo: live }
  }
  return { live }
}
