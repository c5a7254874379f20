import { basename, dirname } from 'node:path'
import type { BranchOrigin } from '../../domain/environment.ts'
import { isClean } from '../../domain/removal/uncommitted.ts'
import type { Tree } from '../../domain/tree.ts'
import type { Work } from '../../domain/work.ts'
import { isClaimable, isInside } from '../../isolation/paths.ts'
import { archonNames, namesUnder, withoutPrefix } from './archon-names.ts'
import type { Candidate } from './candidates.ts'
import { inferWorks, workOfRow } from './infer-work.ts'
import type { Planning } from './planning.ts'

export type Ownable = { readonly branchOrigin: BranchOrigin }

/**
 * Whether Archon made this worktree, so that it may be handed over: it is in one of Archon's own directories, under the
 * name that Archon gives to this work, and clean. Undefined if any of that is in doubt. A persistent chat's worktree is
 * its user's own.
 */
export const ownable = async (
  planning: Planning,
  {
    tree,
    branch,
    candidates,
  }: { readonly tree: Tree; readonly branch: string; readonly candidates: readonly Candidate[] },
): Promise<Ownable | undefined> => {
  const { roots, environments, platforms, signal, context } = planning
  const root = dirname(dirname(tree.path))
  if (![...roots.homes, ...roots.bases].some((one) => isInside(one, root))) return undefined
  const makers = candidates.filter(({ metadata }) => !metadata.adopted)
  const names = namesUnder(roots, tree.path)
  const generated = makers.flatMap((maker) => worksOf(maker, tree.path, branch)).flatMap(archonNames)
  const isGenerated = names.some((name) => generated.includes(withoutPrefix(name)))
  // A pull request of the same repository is checked out on its own branch, in a directory of that name.
  const isPullRequest = makers.some(
    ({ row }) => row?.workflowType === 'pr' && row.branch === branch && names.includes(branch),
  )
  if (makers.length === 0 || !(isGenerated || isPullRequest)) return undefined
  const platformsUsed = candidates.flatMap(({ row, conversations }) => [
    row?.createdByPlatform,
    ...conversations.map(({ platform }) => platform),
  ])
  if (platformsUsed.some((name) => platforms.get(name ?? '')?.persistent === true)) return undefined
  if (!(await isClaimable(tree.path, context.host))) return undefined
  const { dirty, detached } = await environments.glance(tree, signal)
  if (!isClean(dirty) || detached > 0) return undefined
  return { branchOrigin: generated.includes(withoutPrefix(branch)) ? 'created' : 'existing' }
}

/** By its row, which must name the directory; without one, the directory is all there is. */
const worksOf = ({ row, conversations }: Candidate, path: string, branch: string): Work[] => {
  if (row !== undefined) return [workOfRow(row, basename(path)) ?? []].flat()
  const users = conversations.flatMap(({ platform, conversationId: id }) =>
    id === undefined ? [] : [{ platform, id }],
  )
  return [inferWorks({ rows: [], path, branch, conversations: users }).work]
}
