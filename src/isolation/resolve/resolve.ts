/*
 * Which environment a message is for. In: a codebase, a work, hints and who asks. Out: the environment with notices, or
 * the limit that was reached. `links.ts` knows which works share one, `vouch.ts` which commits a trusted person has
 * vouched for, `move-work.ts` moves an identity to another environment.
 */
import type { RequestWithOrigin, ResolveRequest, Resolution } from './resolution.ts'
import { followsHeadOf, isForPullRequest, type IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError, IsolationBlockedError } from '../../domain/errors.ts'
import type { Notice } from '../../domain/notice.ts'
import { isOwnMessage, isTrusted, isTrustedRun } from '../../domain/trust.ts'
import { branchForWork, tasksOfBranch, type Work, sameWork, toWork } from '../../domain/work.ts'
import type { IsolationContext } from '../context.ts'
import { recogniseFullDisk } from '../disk-full.ts'
import { clearHolder } from '../holders.ts'
import { claimWork, linksToRemember, offers, pushNotices, recordLinks, trustedLinks, untrustedOffer } from './links.ts'
import { followMoves, movedNotice } from '../moved.ts'
import { determineOrigin } from '../codebases/pull-request-origin.ts'
import { headNotices } from './head-notices.ts'
import { vouchOf } from './vouch.ts'
import { waitForOperation } from '../wait-for-operation.ts'
import { type Environments } from '../environments.ts'
import { allProviders, presenceOf, providerOf } from '../provider-of.ts'
import type { Adoptable } from '../provider.ts'
import { cleanupToMakeRoom, limitReport } from '../make-room.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

type Found = Omit<Extract<Resolution, { outcome: 'resolved' }>, 'trusted' | 'prShaUsed'>

/**
 * Decides which environment a message is for: the conversation's own, the one of the same work, a linked one, an
 * adoptable one, else a new one. Nothing else decides this.
 */
export const resolveIsolation = async (
  context: IsolationContext,
  environments: Environments,
  asked: ResolveRequest,
): Promise<Resolution> => {
  const { codebase, work, signal } = asked
  const origin = await determineOrigin(context, codebase, work, asked.hints, signal)
  const request: RequestWithOrigin = { ...asked, ...origin, earlierNotices: [] }
  const found =
    (await ownEnvironment(context, request)) ??
    (await sameWorkEnvironment(context, request)) ??
    (await linkedEnvironment(context, request)) ??
    (await adoptExisting(context, environments, request))
  const ownMessage = isOwnMessage(work, request.hints)
  if (found === undefined) {
    const made = await recogniseFullDisk(context.worktreesBase, () => makeOne(context, environments, request))
    return made.outcome === 'limit'
      ? made
      : {
          ...made,
          trusted: isTrustedRun(made.environment.trust, ownMessage),
          prShaUsed: made.how === 'created',
          notices: [...request.earlierNotices, ...made.notices, ...(await offers(context, request))],
        }
  }
  await touch(context, found.environment)
  const provider = await providerOf(context, found.environment)
  const moved = await provider.followHead(context, codebase, found.environment, work, request.hints, { signal })
  const vouch = await vouchOf(context, request, found.environment, moved)
  const links = await recordLinks(context, request, found.environment)
  return {
    ...found,
    trusted: vouch.holds && isTrustedRun(found.environment.trust, ownMessage || vouch.covers),
    prShaUsed: request.hints.prSha !== undefined && followsHeadOf(found.environment, work),
    notices: [
      ...request.earlierNotices,
      ...found.notices,
      ...links,
      ...pushNotices(request, found.environment),
      ...moved.notices,
      ...(found.how === 'conversation' ? [] : headNotices(request, found.environment, moved)),
      ...vouch.notices,
    ],
  }
}

/**
 * A pull request that was our own and is now a fork's (or only shared a tip with a branch of ours) doesn't get the
 * worktree with our files. It does get one that a person linked or vouched for, and runs there untrusted.
 */
const mayUse = ({ trust, prNumber }: IsolatedEnvironment, { work, hints }: RequestWithOrigin): boolean =>
  hints.isForkPR !== true || trust !== 'own' || prNumber !== Number(work.id)

/**
 * A fork's pull request finds a worktree of ours by no number, alias or not: only a person's link to its own
 * conversation leads there, or a person who vouched for its own worktree.
 */
const mayFind = (environment: IsolatedEnvironment, request: RequestWithOrigin): boolean => {
  if (request.hints.isForkPR !== true || !isTrusted(environment.trust)) return true
  return environment.trust !== 'own' && isForPullRequest(environment, request.work)
}

/** 1. The holder's own. If it is gone, that is recorded and the reference cleared; nothing is deleted. */
const ownEnvironment = async (context: IsolationContext, request: RequestWithOrigin): Promise<Found | undefined> => {
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
const sameWorkEnvironment = async (
  context: IsolationContext,
  request: RequestWithOrigin,
): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const identity of identities(request)) {
    const environment = await context.store.environments.liveByWork(codebase.id, identity)
    if (environment === undefined || !mayFind(environment, request)) continue
    // `review 7` is the fork PR's environment, not that of a PR working on its own branch.
    if (!sameWork(identity, work) && environment.branch !== `pr-${work.id}-review`) continue
    const usable = await usableRow(context, request, environment)
    if (usable !== undefined) return { outcome: 'resolved', environment: usable, how: 'same-work', notices: [] }
  }
  return undefined
}

const identities = ({ work, hints }: RequestWithOrigin): Work[] => {
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
const linkedEnvironment = async (context: IsolationContext, request: RequestWithOrigin): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const linked of trustedLinks(request)) {
    const known = await context.store.environments.liveByWork(codebase.id, linked)
    const environment = known && (await usableRow(context, request, known).catch(unlessBlocked(context)))
    if (environment === undefined || !isTrusted(environment.trust)) continue
    return share(context, request, environment, linked, work)
  }
  return undefined
}

/** Another work's environment that can't be used keeps no work from its own. */
const unlessBlocked =
  ({ log }: Pick<IsolationContext, 'log'>) =>
  (error: unknown): undefined => {
    if (!isAppError(error, 'isolation-blocked')) throw error
    log.warn("another work's worktree could not be used", { error: error.message })
  }

const share = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  { codebase }: RequestWithOrigin,
  environment: IsolatedEnvironment,
  from: Work,
  work: Work,
): Promise<Found> => {
  await claimWork(context, codebase, environment, work)
  return { outcome: 'resolved', environment, how: 'linked', notices: [{ kind: 'reused', work: from }] }
}

/**
 * The branch that it would get already has an environment, or somebody made a checkout for this work. An environment
 * keeps its branch when its work is moved to another one.
 */
const findAdoptable = async (context: IsolationContext, request: RequestWithOrigin): Promise<Adoptable | undefined> => {
  const { codebase } = request
  const branch = branchFor(context, request)
  const own = branch === undefined ? undefined : await context.store.environments.liveByBranch(codebase.id, branch)
  if (own !== undefined) return { kind: 'environment', environment: own }
  for (const provider of await allProviders(context)) {
    const found = provider.can.adopt ? await provider.findAdoptable(context, request) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The branch that a new one would get: the one asked for, or an issue's or task's usual one. */
const branchFor = (context: Pick<IsolationContext, 'clock'>, { branch, work }: RequestWithOrigin): string | undefined =>
  branch ?? (work.type === 'issue' || work.type === 'task' ? branchForWork(work, context.clock()) : undefined)

/** 4. A worktree that a person or another tool made. */
const adoptExisting = async (
  context: IsolationContext,
  environments: Environments,
  request: RequestWithOrigin,
): Promise<Found | undefined> => {
  const { codebase, work } = request
  const candidate = await findAdoptable(context, request)
  if (candidate === undefined) return undefined
  if (candidate.kind === 'environment') {
    const inTheWay = candidate.environment.branch === branchFor(context, request)
    const isNeeded = inTheWay || work.type === 'pr'
    const usable = usableRow(context, request, candidate.environment)
    const environment = await (isNeeded ? usable : usable.catch(unlessBlocked(context)))
    if (environment === undefined) {
      // Its directory is gone, but it still has the branch: as the work's own, it is saved and replaced.
      if (inTheWay && gaveUpItsWork(candidate.environment))
        await claimWork(context, codebase, candidate.environment, work)
      return undefined
    }
    // A person may choose any branch by name; a pull request that names or resembles one may not.
    if (!isTrusted(environment.trust) && request.branch === undefined) {
      request.earlierNotices.push(untrustedOffer(environment.work, environment.branch))
      return undefined
    }
    return share(context, request, environment, environment.work, work)
  }
  const environment = await adoptOrLeave(context, environments, request, candidate.path)
  if (environment === undefined) return undefined
  const { path, branch, trust } = environment
  const notices: Notice[] = [
    { kind: 'adopted', path, branch },
    ...(isTrusted(trust) ? [] : [{ kind: 'adopted-untrusted', branch } as const]),
  ]
  return { outcome: 'resolved', environment, how: 'adopted', notices }
}

/** Its work was moved to another environment, so it only has the task that is named after its branch. */
const gaveUpItsWork = ({ id, branch, trust, work }: IsolatedEnvironment): boolean =>
  isTrusted(trust) && tasksOfBranch(branch, id).some((task) => sameWork(task, work))

/** One that was merely suggested and can't be adopted, such as another home's, keeps no work from its own worktree. */
const adoptOrLeave = async (
  context: Pick<IsolationContext, 'log'>,
  environments: Environments,
  request: RequestWithOrigin,
  path: string,
): Promise<IsolatedEnvironment | undefined> => {
  const { codebase, work, hints, createdBy } = request
  const forFork = !isOwnMessage(work, hints)
  try {
    return await environments.adopt(codebase, path, { work, createdBy, aliases: linksToRemember(request), forFork })
  } catch (error) {
    const isSuggested = work.type !== 'pr' && hints.suggestedBranch !== undefined
    // Git allows longer names of branches than we do.
    if (!isSuggested || !(isAppError(error, 'not-adoptable') || isAppError(error, 'name-invalid'))) throw error
    context.log.warn('a suggested worktree could not be adopted', { path, error: error.message })
    return undefined
  }
}

/** 5. Room: remove what is provably merged. 6. Create. */
const makeOne = async (
  context: IsolationContext,
  environments: Environments,
  request: RequestWithOrigin,
): Promise<Found | Extract<Resolution, { outcome: 'limit' }>> => {
  const { codebase } = request
  const work = await freeIdentity(context, request)
  const fork = work.type === 'pr' && request.hints.isForkPR === true
  const aliases = [...linksToRemember(request), ...(fork ? [toWork('review', work.id)] : [])]
  const wanted = { ...request, work, aliases }
  let made = await environments.create(wanted)
  const cleared: Notice[] = []
  if (made.outcome === 'limit') {
    const room = await cleanupToMakeRoom(context, environments, codebase)
    cleared.push(...room.notices)
    made = room.removed === 0 ? made : await environments.create(wanted)
    if (made.outcome === 'limit') {
      return { outcome: 'limit', report: await limitReport(context, codebase, made, room) }
    }
  }
  switch (made.outcome) {
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
        notices: [...cleared, ...made.notices],
      }
  }
}

/** A pull request that may not use its own worktree is handled as a review. */
const freeIdentity = async (context: Pick<IsolationContext, 'store'>, request: RequestWithOrigin): Promise<Work> => {
  const { codebase, work } = request
  const held = await context.store.environments.liveByWork(codebase.id, work)
  return held === undefined || mayFind(held, request) ? work : toWork('review', work.id)
}

/** The current row, if the environment is there. Records `missing` or `active` if that changed. */
const usableRow = async (
  context: IsolationContext,
  { codebase, signal, earlierNotices }: RequestWithOrigin,
  known: IsolatedEnvironment,
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await waitForOperation(context, codebase, known, {
    signal,
    tell: (notice) => earlierNotices.push(notice),
  })
  if (environment?.status !== 'active' && environment?.status !== 'missing') return undefined
  const { status, id, branch } = environment
  const presence = await presenceOf(context, codebase, environment)
  switch (presence.state) {
    case 'present':
      if (status === 'missing') await context.store.environments.transition(id, 'missing', 'active')
      return { ...environment, status: 'active' }
    case 'moved':
      earlierNotices.push(...(await followMoves(context, codebase)).map(movedNotice))
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
