import { isForPullRequest, type IsolatedEnvironment } from '../../domain/environment.ts'
import { isTrusted } from '../../domain/trust.ts'
import { toWork, type Work } from '../../domain/work.ts'
import type { IsolationContext } from '../context.ts'
import type { RequestWithOrigin } from './resolution.ts'

/**
 * A pull request that was our own and is now a fork's (or only shared a tip with a branch of ours) doesn't get the
 * worktree with our files. It does get one that a person linked or vouched for, and runs there untrusted.
 */
export const mayUse = ({ trust, prNumber }: IsolatedEnvironment, { work, hints }: RequestWithOrigin): boolean =>
  hints.isForkPR !== true || trust !== 'own' || prNumber !== Number(work.id)

/**
 * A fork's pull request finds a worktree of ours by no number, alias or not: only a person's link to its own
 * conversation leads there, or a person who vouched for its own worktree.
 */
export const mayFind = (environment: IsolatedEnvironment, request: RequestWithOrigin): boolean => {
  if (request.hints.isForkPR !== true || !isTrusted(environment.trust)) return true
  return environment.trust !== 'own' && isForPullRequest(environment, request.work)
}

/** A pull request that may not use its own worktree is handled as a review. */
export const freeIdentity = async (
  context: Pick<IsolationContext, 'store'>,
  request: RequestWithOrigin,
): Promise<Work> => {
  const { codebase, work } = request
  const held = await context.store.environments.liveByWork(codebase.id, work)
  return held === undefined || mayFind(held, request) ? work : toWork('review', work.id)
}
