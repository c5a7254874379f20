import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { BranchName } from '../domain/names.ts'
import { branchMoves } from '../git/branch-log.ts'
import type { CallOptions } from '../git/door.ts'
import { notReachableFrom } from '../git/reachable.ts'
import type { Base } from './base.ts'
import type { IsolationContext } from './context.ts'
import type { BranchQuestion } from './merge-question.ts'
import { repoOf } from './repo-of.ts'
import { restorePointsOf } from './restore-points.ts'

const heads = 'refs/heads/'

/**
 * Why nothing can be proven merged into this base. Work is merged into a branch: a tag or a commit may have been put
 * right on the work's own tip. With a remote the branch must be a remote's, which can be asked; without one a
 * remote-tracking ref is only a name that anybody can move.
 */
export const whyNoMergeTarget = (
  { remote }: Codebase,
  { ref, name }: Pick<Base, 'ref' | 'name'>,
): string | undefined => {
  if (remote === undefined) return ref.startsWith(heads) ? undefined : `base ${name} is not a local branch`
  return ref.startsWith('refs/remotes/') ? undefined : `base ${name} isn't a remote branch`
}

/** Branches that Coppice made for these environments. */
export const branchesMadeBy = (environments: readonly IsolatedEnvironment[]): ReadonlySet<string> =>
  new Set(environments.filter(({ branchOrigin }) => branchOrigin === 'created').map(({ branch }) => branch))

/** Of live environments and of those that can be restored: work in progress, never a base. */
const branchesMade = async (context: IsolationContext, codebase: Codebase): Promise<ReadonlySet<string>> => {
  const removed = (await restorePointsOf(context, codebase)).map(({ contents }) => contents.environment)
  return branchesMadeBy([...(await context.store.environments.live(codebase.id)), ...removed])
}

/**
 * Which of these branches, all within base or equal to it, may be there for another reason than a merge: base was
 * created from them. Anybody can create a local branch on a worktree's tip, and it proves nothing.
 */
export const doubtsAbout = async (
  context: IsolationContext,
  codebase: Codebase,
  base: Base,
  questions: readonly BranchQuestion[],
  options: CallOptions = {},
): Promise<ReadonlyMap<BranchName, string>> => {
  const all = (why: string) => new Map(questions.map(({ branch }) => [branch, why]))
  if (questions.length === 0) return new Map()
  const noTarget = whyNoMergeTarget(codebase, base)
  if (noTarget !== undefined) return all(noTarget)
  if (codebase.remote !== undefined) return new Map()
  try {
    const branch = base.ref.slice(heads.length)
    if ((await branchesMade(context, codebase)).has(branch)) return all(`base ${branch} was created for a worktree`)
    return await createdFrom(context, codebase, branch, questions, options)
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    return all(toAppError(error).message)
  }
}

const createdFrom = async (
  { git }: IsolationContext,
  codebase: Codebase,
  branch: string,
  questions: readonly BranchQuestion[],
  options: CallOptions,
): Promise<ReadonlyMap<BranchName, string>> => {
  const repo = repoOf(codebase)
  const doubted = (some: readonly BranchQuestion[], why: string) => new Map(some.map((one) => [one.branch, why]))
  const [first, ...later] = await branchMoves(repo, branch)
  if (first === undefined) {
    // Without a reflog only what was started from this very branch is known to be younger than it.
    const others = questions.filter(({ startedFrom }) => startedFrom !== branch)
    return doubted(others, `base ${branch} has no reflog that says when it was created`)
  }
  // A reflog that begins later than the branch: it is older than 90 days.
  if (first.from !== undefined || first.to === undefined) return new Map()
  if (later.every(({ to }) => to === first.to)) {
    return doubted(questions, `nothing has been merged into ${branch} since it was created`)
  }
  const tips = questions.map(({ tip }) => tip)
  const outside = await notReachableFrom(git, repo, first.to, tips, options)
  const inside = questions.filter(({ tip }) => !outside.has(tip))
  return doubted(inside, `base ${branch} was created from it`)
}
