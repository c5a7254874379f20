import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { branchNameProblem, toBranchName } from '../../../domain/names.ts'
import { readHead } from '../../../git/admin-dir.ts'
import { branchReflog, wasRenamedFrom } from '../../../git/reflog.ts'
import type { Tree } from '../../../git/door.ts'
import { readRefs } from '../../../git/refs.ts'
import type { EnvironmentPatch } from '../../../store/environments/store.ts'
import type { IsolationContext } from '../../context.ts'
import type { FollowedRename } from '../../provider.ts'

/** A dry run returns the same and records nothing. */
export type FollowOptions = { readonly dryRun?: boolean | undefined }

/**
 * Agents sometimes rename an environment's branch (`git branch -m`). The record follows the branch that is checked out
 * if the reflog shows the rename, or if the recorded branch is gone. Otherwise another branch was merely checked out,
 * and the record stays.
 */
export const followRename = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Pick<Tree, 'gitDir' | 'commonDir'>,
  { dryRun = false }: FollowOptions = {},
): Promise<FollowedRename> => {
  const unchanged: FollowedRename = { environment, notices: [] }
  const head = await readHead(tree.gitDir)
  if (head === undefined || !('branch' in head) || head.branch === environment.branch) return unchanged
  const { branch } = head
  const [from, to] = [`refs/heads/${environment.branch}`, `refs/heads/${branch}`]
  const refs = await readRefs(context.git, tree, [from, to])
  const renamed = wasRenamedFrom(await branchReflog(tree, branch), environment.branch, branch)
  if (!refs.has(to) || (refs.has(from) && !renamed) || branchNameProblem(branch) !== undefined) return unchanged
  if ((await context.store.environments.liveByBranch(codebase.id, branch)) !== undefined) return unchanged
  const patch: EnvironmentPatch = {
    branch: toBranchName(branch),
    // If the reflog doesn't show who made it, it isn't ours to delete.
    branchOrigin: renamed ? environment.branchOrigin : 'existing',
  }
  if (!dryRun) await context.store.environments.update(environment.id, patch)
  const notice = { kind: 'branch-renamed', from: environment.branch, to: branch, seen: renamed } as const
  return { environment: { ...environment, ...patch }, notices: [notice] }
}
