import type { ResolveRequest, Resolution } from './resolution.ts'
import { followsHeadOf, isForPullRequest, type IsolatedEnvironment } from '../domain/environment.ts'
import { IsolationBlockedError } from '../domain/errors.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { StaleBase } from '../domain/merge-proof.ts'
import type { BranchName } from '../domain/names.ts'
import type { Notice } from '../domain/notice.ts'
import { type Doubt, isOwnMessage, isTrusted, isTrustedRun, wasVouchedFor } from '../domain/trust.ts'
import { type Work, sameWork, toWork } from '../domain/work.ts'
import type { IsolationContext } from './context.ts'
import { clearHolder } from './holders.ts'
import { offerMention } from './codebases/mention.ts'
import { followMoves, movedNotice } from './moved.ts'
import { determineOrigin } from './codebases/pull-request-origin.ts'
import { waitForOperation } from './wait-for-operation.ts'
import { type Environments } from './environments.ts'
import { allProviders, presenceOf, providerOf } from './provider-of.ts'
import type { Adoptable, FollowedHead } from './provider.ts'
import { cleanupToMakeRoom, limitReport } from './make-room.ts'
import { coppice, remedy } from '../domain/remedy.ts'

type Found = Omit<Extract<Resolution, { outcome: 'resolved' }>, 'trusted' | 'prShaUsed'>

/** A request whose origin is known: `isForkPR` says what is proven. `told`: notices for the user so far. */
type Settled = ResolveRequest & { readonly doubt: Doubt | undefined; readonly told: Notice[] }

/**
 * Decides which environment a message is for: the conversation's own, the one of the same work, a linked one, an
 * adoptable one, else a new one. Nothing else decides this.
 */
export const resolveIsolation = async (
  context: IsolationContext,
  isolation: Environments,
  asked: ResolveRequest,
): Promise<Resolution> => {
  const { codebase, work, signal } = asked
  const settled = await determineOrigin(context, codebase, work, asked.hints, signal)
  const request: Settled = { ...asked, ...settled, told: [] }
  const found =
    (await ownEnvironment(context, request)) ??
    (await sameWorkEnvironment(context, request)) ??
    (await linkedEnvironment(context, request)) ??
    (await adoptExisting(context, isolation, request))
  const ownMessage = isOwnMessage(work, request.hints)
  if (found === undefined) {
    const made = await makeOne(context, isolation, request)
    return made.outcome === 'limit'
      ? made
      : {
          ...made,
          trusted: isTrustedRun(made.environment.trust, ownMessage),
          prShaUsed: made.how === 'created',
          notices: [...request.told, ...made.notices, ...(await offers(context, request))],
        }
  }
  await touch(context, found.environment)
  const provider = await providerOf(context, found.environment)
  const moved = await provider.followHead(context, codebase, found.environment, work, request.hints, { signal })
  const vouch = await vouchOf(context, request, found.environment, moved)
  return {
    ...found,
    trusted: vouch.holds && isTrustedRun(found.environment.trust, ownMessage || vouch.covers),
    prShaUsed: request.hints.prSha !== undefined && followsHeadOf(found.environment, work),
    notices: [...request.told, ...found.notices, ...moved.notices, ...vouch.notices],
  }
}

type Vouch = {
  /** The checkout is what a person vouched for. Also true if nobody had to. */
  readonly holds: boolean
  /** Vouching for a pull request's worktree also covers messages about it, until its head moves. */
  readonly covers: boolean
  readonly notices: readonly Notice[]
}

const vouchOf = async (
  context: IsolationContext,
  { codebase, work, hints, signal }: Settled,
  environment: IsolatedEnvironment,
  moved: FollowedHead,
): Promise<Vouch> => {
  const { trust, branch } = environment
  if (!wasVouchedFor(trust)) return { holds: true, covers: false, notices: [] }
  const provider = await providerOf(context, environment)
  const holds = trust === 'vouched' && (await provider.isVouched(context, codebase, environment, { signal }))
  const asksForHead = !isOwnMessage(work, hints) && isForPullRequest(environment, work)
  const covers = holds && asksForHead && moved.current
  if (covers || (holds && !asksForHead) || moved.notices.length > 0) return { holds, covers, notices: [] }
  const notice: Notice = holds
    ? { kind: 'run-untrusted', prNumber: work.id, head: hints.prSha }
    : { kind: 'not-vouched-any-more', branch, why: trust === 'lapsed' ? 'untrusted-run' : 'other-commit' }
  return { holds, covers, notices: [notice] }
}

/**
 * A pull request that was our own and is now a fork's (or only shared a tip with a branch of ours) doesn't get the
 * worktree with our files. It does get one that a person linked or vouched for, and runs there untrusted.
 */
const mayUse = ({ trust, prNumber }: IsolatedEnvironment, { work, hints }: Settled): boolean =>
  hints.isForkPR !== true || trust !== 'own' || prNumber !== Number(work.id)

/** 1. The holder's own. If it is gone, that is recorded and the reference cleared; nothing is deleted. */
const ownEnvironment = async (context: IsolationContext, request: Settled): Promise<Found | undefined> => {
  const { holder, codebase } = request
  if (holder?.environmentId === undefined) return undefined
  const environment = await context.store.environments.get(holder.environmentId)
  const isHere = environment?.codebaseId === codebase.id && mayUse(environment, request)
  const usable = isHere ? await usableRow(context, request, environment) : undefined
  if (usable !== undefined) return { outcome: 'resolved', environment: usable, how: 'conversation', notices: [] }
  await clearHolder(context, holder)
  return undefined
}

/** 2. The active environment of the same work, by its own identity or by an alias. */
const sameWorkEnvironment = async (context: IsolationContext, request: Settled): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const identity of identities(request)) {
    const environment = await context.store.environments.liveByWork(codebase.id, identity)
    if (environment === undefined || !mayUse(environment, request)) continue
    // `review 7` is the fork PR's environment, not that of a PR working on its own branch.
    if (!sameWork(identity, work) && environment.branch !== `pr-${work.id}-review`) continue
    const usable = await usableRow(context, request, environment)
    if (usable !== undefined) return { outcome: 'resolved', environment: usable, how: 'same-work', notices: [] }
  }
  return undefined
}

const identities = ({ work, hints }: Settled): Work[] => {
  // A PR of the same repository works on its own branch; a review's tree would not push to it.
  const reviewed = hints.isForkPR !== false || hints.prBranch === undefined
  if (work.type === 'pr' && reviewed) return [work, toWork('review', work.id)]
  if (work.type === 'review') return [work, toWork('pr', work.id)]
  return [work]
}

/**
 * 3. A linked work's: linked issues, then linked PRs. From then on either identity finds it. An untrusted one is only
 * offered: our own work doesn't move into a stranger's tree because of a link.
 */
const linkedEnvironment = async (context: IsolationContext, request: Settled): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const linked of trustedLinks(request)) {
    const known = await context.store.environments.liveByWork(codebase.id, linked)
    const environment = known && (await usableRow(context, request, known))
    if (environment === undefined || !isTrusted(environment.trust)) continue
    return share(context, request, environment, linked, work)
  }
  return undefined
}

/** Anybody can write `Fixes #42` in a fork's pull request: such a link is offered, never followed. */
const trustedLinks = (request: Settled): Work[] => (mayLink(request) ? linkedWorks(request.hints) : [])

const mayLink = ({ work, hints, linkedByHand }: Settled): boolean =>
  isOwnMessage(work, hints) || (linkedByHand === true && hints.isForkPR !== true)

const linkedWorks = ({ linkedIssues = [], linkedPRs = [] }: IsolationHints): Work[] => [
  ...linkedIssues.map((number) => toWork('issue', String(number))),
  ...linkedPRs.map((number) => toWork('pr', String(number))),
]

/** Links that weren't followed but have an environment to share. */
const offers = async (context: Pick<IsolationContext, 'store'>, request: Settled): Promise<Notice[]> => {
  const offered: Notice[] = []
  for (const linked of linkedWorks(request.hints)) {
    const environment = await context.store.environments.liveByWork(request.codebase.id, linked)
    if (environment === undefined) continue
    const { branch, trust } = environment
    if (!mayLink(request)) offered.push({ kind: 'link-not-followed', work: linked, branch })
    else if (!isTrusted(trust)) offered.push(untrustedOffer(linked, branch))
  }
  return offered
}

const untrustedOffer = (work: Work, branch: BranchName): Notice => ({ kind: 'untrusted-not-reused', work, branch })

const share = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  { codebase }: Settled,
  environment: IsolatedEnvironment,
  from: Work,
  work: Work,
): Promise<Found> => {
  await context.store.environments.addAlias(environment.id, codebase.id, work, context.clock())
  return { outcome: 'resolved', environment, how: 'linked', notices: [{ kind: 'reused', work: from }] }
}

/** The requested branch already has an environment, or somebody made a checkout for this work. */
const findAdoptable = async (context: IsolationContext, request: Settled): Promise<Adoptable | undefined> => {
  const { codebase, branch } = request
  const own = branch === undefined ? undefined : await context.store.environments.liveByBranch(codebase.id, branch)
  if (own !== undefined) return { kind: 'environment', environment: own }
  for (const provider of await allProviders(context)) {
    const found = provider.can.adopt ? await provider.findAdoptable(context, request) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** 4. A worktree that a person or another tool made. */
const adoptExisting = async (
  context: IsolationContext,
  isolation: Environments,
  request: Settled,
): Promise<Found | undefined> => {
  const { codebase, work } = request
  const candidate = await findAdoptable(context, request)
  if (candidate === undefined) return undefined
  if (candidate.kind === 'environment') {
    const environment = await usableRow(context, request, candidate.environment)
    if (environment === undefined) return undefined
    // A person may choose any branch by name; a pull request that names or resembles one may not.
    if (!isTrusted(environment.trust) && request.branch === undefined) {
      request.told.push(untrustedOffer(environment.work, environment.branch))
      return undefined
    }
    return share(context, request, environment, environment.work, work)
  }
  const environment = await isolation.adopt(codebase, candidate.path, {
    work,
    createdBy: request.createdBy,
    aliases: trustedLinks(request),
    forFork: !isOwnMessage(work, request.hints),
  })
  const { path, branch, trust } = environment
  const notices: Notice[] = [
    { kind: 'adopted', path, branch },
    ...(isTrusted(trust) ? [] : [{ kind: 'adopted-untrusted', branch } as const]),
  ]
  return { outcome: 'resolved', environment, how: 'adopted', notices }
}

/** 5. Room: remove what is provably merged. 6. Create. */
const makeOne = async (
  context: IsolationContext,
  isolation: Environments,
  request: Settled,
): Promise<Found | Extract<Resolution, { outcome: 'limit' }>> => {
  const { codebase } = request
  const work = await freeIdentity(context, request)
  const fork = work.type === 'pr' && request.hints.isForkPR === true
  const aliases = [...trustedLinks(request), ...(fork ? [toWork('review', work.id)] : [])]
  const wanted = { ...request, work, aliases }
  // While git creates files, this reads history.
  const offer = offerMention(context, codebase, work)
  let made = await isolation.create(wanted)
  const cleared: Notice[] = []
  let stale: StaleBase | undefined
  if (made.outcome === 'limit') {
    const room = await cleanupToMakeRoom(context, isolation, codebase)
    cleared.push(...room.notices)
    stale = room.stale
    made = room.removed === 0 ? made : await isolation.create(wanted)
  }
  switch (made.outcome) {
    case 'limit':
      return { outcome: 'limit', report: await limitReport(context, codebase, made, stale) }
    case 'existing':
      return {
        outcome: 'resolved',
        environment: made.environment,
        how: 'same-work',
        notices: [...cleared, ...(made.notices ?? [])],
      }
    case 'created':
      return {
        outcome: 'resolved',
        environment: made.environment,
        how: 'created',
        notices: [...cleared, ...made.notices, ...(await offer)],
      }
  }
}

/** A pull request that may not use its own worktree is handled as a review. */
const freeIdentity = async (context: Pick<IsolationContext, 'store'>, request: Settled): Promise<Work> => {
  const { codebase, work } = request
  const held = await context.store.environments.liveByWork(codebase.id, work)
  return held === undefined || mayUse(held, request) ? work : toWork('review', work.id)
}

/** The current row, if the environment is there. Records `missing` or `active` if that changed. */
const usableRow = async (
  context: IsolationContext,
  { codebase, signal, told }: Settled,
  known: IsolatedEnvironment,
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await waitForOperation(context, codebase, known, { signal, tell: (notice) => told.push(notice) })
  if (environment?.status !== 'active' && environment?.status !== 'missing') return undefined
  const { status, id, branch } = environment
  const presence = await presenceOf(context, codebase, environment)
  switch (presence.state) {
    case 'present':
      if (status === 'missing') await context.store.environments.transition(id, 'missing', 'active')
      return { ...environment, status: 'active' }
    case 'moved':
      told.push(...(await followMoves(context, codebase)).map(movedNotice))
      return usableAfterMove(context, id)
    case 'missing':
      if (status === 'active') await context.store.environments.transition(id, 'active', 'missing')
      return undefined
    case 'not-ours':
    case 'cannot-tell':
      throw new IsolationBlockedError(`can't use the worktree of ${branch}: ${presence.detail}`, {
        remedy: remedy`run ${coppice('doctor')} for suggestions`,
      })
  }
}

const usableAfterMove = async (
  { store }: Pick<IsolationContext, 'store'>,
  id: IsolatedEnvironment['id'],
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await store.environments.get(id)
  return environment?.status === 'active' ? environment : undefined
}

/** A write per message would cost more than the lookup; for "last activity" a minute is precise enough. */
const touch = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  environment: IsolatedEnvironment,
): Promise<void> => {
  const now = context.clock()
  if (now - environment.lastActivityAt < 60_000) return
  await context.store.environments.update(environment.id, { lastActivityAt: now })
}
