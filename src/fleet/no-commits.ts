import type { FleetAgent } from '../domain/fleet/agent.ts'
import { branchCommits } from '../isolation/codebases/branch-commits.ts'
import { presenceOf, providerOf } from '../isolation/provider-of.ts'
import type { FleetContext } from './context.ts'

/**
 * Without commits on its branch, an item loses nothing if another agent starts it again. The gates check for uncommitted
 * files. False if that isn't known.
 */
export const hasNoCommits = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  { environmentId, codebaseId }: FleetAgent,
): Promise<boolean> => {
  const { store } = isolation
  const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  if (environment === undefined || environment.status === 'removed') return true
  const codebase = await store.codebases.get(codebaseId)
  if (codebase === undefined || environment.status !== 'active') return false
  const presence = await presenceOf(isolation, codebase, environment)
  if (presence.state !== 'present') return false
  // Commits on another branch are the item's, too, and whoever begins anew wouldn't know of them.
  const head = await (await providerOf(isolation, environment)).headBranch(presence.tree)
  if (head !== environment.branch) return false
  return (await branchCommits(isolation, codebase, environment, { limit: 1 }))?.length === 0
}
