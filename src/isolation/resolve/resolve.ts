/*
 * Which environment a message is for. In: a codebase, a work, hints and who asks. Out: the environment with notices, or
 * the limit that was reached. `links.ts` knows which works share one, `adopt-existing.ts` which worktrees of others
 * can be used, `vouch.ts` which commits a trusted person has vouched for; `move-work.ts` moves an identity to another
 * environment.
 */
import type { Found, RequestWithOrigin, ResolveRequest, Resolution } from './resolution.ts'
import { followsHeadOf, type IsolatedEnvironment } from '../../domain/environment.ts'
import type { Notice } from '../../domain/notice.ts'
import { isOwnMessage, isTrusted, isTrustedRun } from '../../domain/trust.ts'
import { type Work, sameWork, toWork } from '../../domain/work.ts'
import type { IsolationContext } from '../context.ts'
import { recogniseFullDisk } from '../disk-full.ts'
import { clearHolder } from '../holders.ts'
import { adoptExisting } from './adopt-existing.ts'
import { linksToRemember, offers, pushNotices, recordLinks, share, trustedLinks } from './links.ts'
import { determineOrigin } from '../codebases/pull-request-origin.ts'
import { headNotices } from './head-notices.ts'
import { freeIdentity, mayFind, mayUse } from './may-use.ts'
import { unlessBlocked, usableRow } from './usable-row.ts'
import { vouchOf } from './vouch.ts'
import { type Environments } from '../environments.ts'
import { providerOf } from '../provider-of.ts'
import { cleanupToMakeRoom, limitReport } from '../make-room.ts'

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

/** A write per message would cost more than the lookup; for "last activity" a minute is precise enough. */
const touch = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  environment: IsolatedEnvironment,
): Promise<void> => {
  const now = context.clock()
  if (now - environment.lastActivityAt < 60_000) return
  await context.store.environments.update(environment.id, { lastActivityAt: now })
}
