import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { IsolationBlockedError } from '../domain/errors.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { BranchName } from '../domain/names.ts'
import { type Work, sameWork, toWork, workLabel } from '../domain/work.ts'
import type { Conversation } from '../store/store.ts'
import { findAdoptable } from './adoptable.ts'
import type { IsolationContext } from './context.ts'
import { followPullRequest } from './follow.ts'
import { offerMention } from './mention.ts'
import { followMoves, movedNotice } from './moved.ts'
import { presenceOf } from './presence.ts'
import { whenSettled } from './settled.ts'
import type { IsolationProvider } from './provider.ts'
import { type LimitReport, cleanupToMakeRoom, limitReport } from './room.ts'

export type ResolveRequest = {
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  readonly conversation?: Conversation
  readonly branch?: BranchName
  readonly base?: string
  readonly createdBy: string
  readonly signal?: AbortSignal
}

export type Resolution =
  | {
      readonly outcome: 'resolved'
      readonly environment: IsolatedEnvironment
      readonly how: 'conversation' | 'same-work' | 'linked' | 'adopted' | 'created'
      readonly notices: readonly string[]
    }
  /** Never a reason to fall back to the shared checkout. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }

type Found = Extract<Resolution, { outcome: 'resolved' }>

/** `told`: what was noticed on the way, for the user. */
type Asked = ResolveRequest & { readonly told: string[] }

/** Which environment is this message for? The only authority, in the order of SPEC.md 2.2. */
export const resolveIsolation = async (
  context: IsolationContext,
  provider: IsolationProvider,
  asked: ResolveRequest,
): Promise<Resolution> => {
  const request: Asked = { ...asked, told: [] }
  const found =
    (await ownEnvironment(context, request)) ??
    (await sameWorkEnvironment(context, request)) ??
    (await linkedEnvironment(context, request)) ??
    (await adoptExisting(context, provider, request))
  if (found === undefined) {
    const made = await makeOne(context, provider, request)
    return made.outcome === 'limit' ? made : { ...made, notices: [...request.told, ...made.notices] }
  }
  await touch(context, found.environment)
  const moved = await followPullRequest(context, request.codebase, found.environment, request.work, request.hints)
  return { ...found, notices: [...request.told, ...found.notices, ...moved] }
}

/** 1. The conversation's own. One that is gone is recorded as such and the reference cleared; nothing is deleted. */
const ownEnvironment = async (context: IsolationContext, request: Asked): Promise<Found | undefined> => {
  const { conversation, codebase } = request
  if (conversation?.environmentId === undefined) return undefined
  const environment = await context.store.environments.get(conversation.environmentId)
  const usable = environment?.codebaseId === codebase.id ? await usableRow(context, request, environment) : undefined
  if (usable !== undefined) return { outcome: 'resolved', environment: usable, how: 'conversation', notices: [] }
  await context.store.conversations.update(conversation.id, { environmentId: undefined })
  return undefined
}

/** 2. The active environment of the same work, by its own identity or by an alias. */
const sameWorkEnvironment = async (context: IsolationContext, request: Asked): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const identity of identities(request)) {
    const environment = await context.store.environments.liveByWork(codebase.id, identity)
    if (environment === undefined) continue
    // `review 7` is the fork PR's environment, not that of a PR that works on its own branch.
    if (!sameWork(identity, work) && environment.branch !== `pr-${work.id}-review`) continue
    const usable = await usableRow(context, request, environment)
    if (usable !== undefined) return { outcome: 'resolved', environment: usable, how: 'same-work', notices: [] }
  }
  return undefined
}

const identities = ({ work, hints }: ResolveRequest): Work[] => {
  // A PR of the same repository works on its own branch: the review's tree would not push to it.
  const reviewed = hints.isForkPR === true || hints.prBranch === undefined
  if (work.type === 'pr' && reviewed) return [work, toWork('review', work.id)]
  if (work.type === 'review') return [work, toWork('pr', work.id)]
  return [work]
}

/** 3. A linked work's: linked issues, then linked PRs. From then on either identity finds it. */
const linkedEnvironment = async (context: IsolationContext, request: Asked): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const linked of linkedWorks(request.hints)) {
    const known = await context.store.environments.liveByWork(codebase.id, linked)
    const environment = known && (await usableRow(context, request, known))
    if (environment === undefined) continue
    return share(context, request, environment, `Reusing worktree from ${workLabel(linked)}`, work)
  }
  return undefined
}

const linkedWorks = ({ linkedIssues = [], linkedPRs = [] }: IsolationHints): Work[] => [
  ...linkedIssues.map((number) => toWork('issue', String(number))),
  ...linkedPRs.map((number) => toWork('pr', String(number))),
]

const share = async (
  context: IsolationContext,
  { codebase }: ResolveRequest,
  environment: IsolatedEnvironment,
  notice: string,
  work: Work,
): Promise<Found> => {
  await context.store.environments.addAlias(environment.id, codebase.id, work, context.clock())
  return { outcome: 'resolved', environment, how: 'linked', notices: [notice] }
}

/** 4. A worktree that a person or another tool made. */
const adoptExisting = async (
  context: IsolationContext,
  provider: IsolationProvider,
  request: Asked,
): Promise<Found | undefined> => {
  const { codebase, work, hints } = request
  const candidate = await findAdoptable(context, request)
  if (candidate === undefined) return undefined
  if (candidate.kind === 'environment') {
    const environment = await usableRow(context, request, candidate.environment)
    if (environment === undefined) return undefined
    return share(context, request, environment, `Reusing worktree from ${workLabel(environment.work)}`, work)
  }
  const aliases = linkedWorks(hints)
  const environment = await provider.adopt(codebase, candidate.path, { work, createdBy: request.createdBy, aliases })
  const notice = `Adopted the worktree at ${environment.path} (branch \`${environment.branch}\`)`
  return { outcome: 'resolved', environment, how: 'adopted', notices: [notice] }
}

/** 5. Room: what is provably merged goes first. 6. Create. */
const makeOne = async (
  context: IsolationContext,
  provider: IsolationProvider,
  request: ResolveRequest,
): Promise<Resolution> => {
  const { hints, work, codebase } = request
  const fork = work.type === 'pr' && hints.isForkPR === true
  const wanted = { ...request, aliases: [...linkedWorks(hints), ...(fork ? [toWork('review', work.id)] : [])] }
  // Beside the creation: it looks at history while git writes files.
  const offer = offerMention(context, codebase, work)
  let made = await provider.create(wanted)
  const cleared: string[] = []
  let stale: string | undefined
  if (made.outcome === 'limit') {
    const room = await cleanupToMakeRoom(context, provider, codebase)
    cleared.push(...room.notices)
    stale = room.stale
    made = room.removed === 0 ? made : await provider.create(wanted)
  }
  switch (made.outcome) {
    case 'limit':
      return { outcome: 'limit', report: await limitReport(context, codebase, made, stale) }
    case 'existing':
      return { outcome: 'resolved', environment: made.environment, how: 'same-work', notices: cleared }
    case 'created':
      return {
        outcome: 'resolved',
        environment: made.environment,
        how: 'created',
        notices: [...cleared, ...made.notices, ...(await offer)],
      }
  }
}

/** The row as it is now, if the environment is really there: gone is `missing`, come back is `active`. */
const usableRow = async (
  context: IsolationContext,
  { codebase, signal, told }: Asked,
  known: IsolatedEnvironment,
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await whenSettled(context, codebase, known, signal)
  if (environment?.status !== 'active' && environment?.status !== 'missing') return undefined
  const { status, id, branch } = environment
  const presence = await presenceOf(codebase, environment)
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
      throw new IsolationBlockedError(`the environment of ${branch} cannot be used: ${presence.detail}`, {
        remedy: '`coppice doctor` says what can be done',
      })
  }
}

const usableAfterMove = async (
  { store }: IsolationContext,
  id: IsolatedEnvironment['id'],
): Promise<IsolatedEnvironment | undefined> => {
  const environment = await store.environments.get(id)
  return environment?.status === 'active' ? environment : undefined
}

/** A write per message would cost more than the whole look-up; a minute is fine enough for "last activity". */
const touch = async (context: IsolationContext, environment: IsolatedEnvironment): Promise<void> => {
  const now = context.clock()
  if (now - environment.lastActivityAt < 60_000) return
  await context.store.environments.update(environment.id, { lastActivityAt: now })
}
