import { type Codebase, isForPullRequest, type IsolatedEnvironment } from '../../domain/environment.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import type { BranchName } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import { isOwnMessage, isTrusted } from '../../domain/trust.ts'
import { isNumbered, sameWork, toWork, type Work } from '../../domain/work.ts'
import type { IsolationContext } from '../context.ts'
import type { Found, RequestWithOrigin } from './resolution.ts'

/*
 * Works that a message names beside its own: `Fixes #42`, the pull requests that close an issue. What may be followed,
 * what is remembered, and what the user is told.
 */

/** Anybody can write `Fixes #42` in a fork's pull request: such a link is offered, never followed. */
export const trustedLinks = (request: RequestWithOrigin): Work[] => (mayLink(request) ? linkedWorks(request.hints) : [])

/**
 * The links that an environment is found by from now on. A thread that names a pull request joins its worktree if there
 * is one; but without one, the pull request still gets its own branch rather than the thread's.
 */
export const linksToRemember = (request: RequestWithOrigin): Work[] =>
  trustedLinks(request).filter(({ type }) => request.work.type !== 'thread' || type === 'issue')

const mayLink = ({ work, hints, linkedByHand }: RequestWithOrigin): boolean =>
  isOwnMessage(work, hints) || (linkedByHand === true && hints.isForkPR !== true)

const linkedWorks = ({ linkedIssues = [], linkedPRs = [] }: IsolationHints): Work[] => [
  ...linkedIssues.map((number) => toWork('issue', String(number))),
  ...linkedPRs.map((number) => toWork('pr', String(number))),
]

/** Links that weren't followed but have an environment to share. For a new environment, which has the others. */
export const offers = async (
  context: Pick<IsolationContext, 'store'>,
  request: RequestWithOrigin,
): Promise<Notice[]> => {
  const offered: Notice[] = []
  for (const linked of linkedWorks(request.hints)) {
    const environment = await context.store.environments.liveByWork(request.codebase.id, linked)
    if (environment !== undefined) offered.push(...offerOf(request, linked, environment))
  }
  return offered
}

const offerOf = (request: RequestWithOrigin, work: Work, { branch, trust }: IsolatedEnvironment): Notice[] => {
  if (!mayLink(request)) return [{ kind: 'link-not-followed', work, branch }]
  return isTrusted(trust) ? [] : [untrustedOffer(work, branch)]
}

export const untrustedOffer = (work: Work, branch: BranchName): Notice => ({
  kind: 'untrusted-not-reused',
  work,
  branch,
})

/**
 * For an environment that was there already. A link may appear in any message: a free one is remembered, one that has
 * another worktree is reported. What a conversation was told before, its reporter leaves out.
 */
export const recordLinks = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  request: RequestWithOrigin,
  environment: IsolatedEnvironment,
): Promise<Notice[]> => {
  const { codebase, work, hints } = request
  const { environments } = context.store
  const add = (one: Work): Promise<boolean> => environments.addAlias(environment.id, codebase.id, one, context.clock())
  const remembered = isTrusted(environment.trust) ? linksToRemember(request) : []
  // Its conversation was linked before anybody knew what it is about.
  const unclaimed = isNumbered(work.type) && isOwnMessage(work, hints) && isTrusted(environment.trust)
  if (unclaimed) await claimWork(context, codebase, environment, work)
  const notices: Notice[] = []
  for (const linked of linkedWorks(hints)) {
    const holder = await environments.liveByWork(codebase.id, linked)
    if (holder?.id === environment.id || sameWork(linked, work)) continue
    if (holder === undefined) {
      if (remembered.some((one) => sameWork(one, linked)) && (await add(linked)))
        notices.push({ kind: 'link-recorded', work: linked })
    } else if (holder.status === 'active') {
      const offered = offerOf(request, linked, holder)
      const { branch } = environment
      notices.push(...(offered.length > 0 ? offered : [twoWorktrees(work, linked, branch, holder.branch)]))
    }
  }
  return notices
}

/**
 * The work is found in this environment, unless it is in another one. One whose directory is gone no longer has it, as
 * when a new one is made for it.
 */
export const claimWork = async (
  { store: { environments }, clock }: Pick<IsolationContext, 'store' | 'clock'>,
  codebase: Codebase,
  { id }: IsolatedEnvironment,
  work: Work,
): Promise<void> => {
  const holder = await environments.liveByWork(codebase.id, work)
  if (holder?.status === 'missing') await environments.moveWork(id, codebase.id, work, clock())
  else if (holder === undefined) await environments.addAlias(id, codebase.id, work, clock())
}

/** The work is worked on in another one's environment. */
export const share = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  { codebase }: RequestWithOrigin,
  environment: IsolatedEnvironment,
  from: Work,
  work: Work,
): Promise<Found> => {
  await claimWork(context, codebase, environment, work)
  return { outcome: 'resolved', environment, how: 'linked', notices: [{ kind: 'reused', work: from }] }
}

const twoWorktrees = (work: Work, linked: Work, branch: BranchName, other: BranchName): Notice => ({
  kind: 'two-worktrees',
  work,
  linked,
  branch,
  other,
})

/** A pull request in a worktree that isn't its own: a plain push from there doesn't update it. */
export const pushNotices = (
  { codebase, work, hints: { prBranch, isForkPR } }: RequestWithOrigin,
  environment: IsolatedEnvironment,
): Notice[] => {
  if (work.type !== 'pr' || prBranch === undefined) return []
  const { branch } = environment
  const pushesThere = branch === prBranch || environment.prBranch === prBranch
  if (pushesThere || sameWork(environment.work, work) || isForPullRequest(environment, work)) return []
  const to = isForkPR === false ? { remote: codebase.remote } : undefined
  return [{ kind: 'pushes-elsewhere', prNumber: work.id, prBranch, branch, to }]
}
