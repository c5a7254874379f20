import { isForPullRequest, type IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError } from '../../domain/errors.ts'
import type { Notice } from '../../domain/notice.ts'
import { isOwnMessage, isTrusted, mayServe } from '../../domain/trust.ts'
import { branchForWork, sameWork, tasksOfBranch, type Work } from '../../domain/work.ts'
import type { IsolationContext } from '../context.ts'
import type { Environments } from '../environments.ts'
import { locked } from '../lock/locked.ts'
import type { Adoptable } from '../provider.ts'
import { allProviders } from '../provider-of.ts'
import { claimWork, linksToRemember, share, untrustedOffer } from './links.ts'
import { freeIdentity } from './may-use.ts'
import { replaceMissing } from './replace-missing.ts'
import type { Found, RequestWithOrigin } from './resolution.ts'
import { unlessBlocked, usableRow } from './usable-row.ts'

/** The branch that it would get already has an environment, or a person or another tool made a worktree for this work. */
export const adoptExisting = async (
  context: IsolationContext,
  environments: Environments,
  request: RequestWithOrigin,
): Promise<Found | undefined> => {
  const { codebase, work } = request
  for (const known of await holdersOfBranch(context, request)) {
    const environment = await usableRow(context, request, known)
    if (environment !== undefined) return shareIfAllowed(context, request, environment)
    // Its directory is gone, but it still has the branch: as the work's own, it is saved and replaced.
    if (gaveUpItsWork(known) && mayServe(known, work, true)) await claimWork(context, codebase, known, work)
  }
  const candidate = await findAdoptable(context, request)
  if (candidate === undefined) return undefined
  if (candidate.kind === 'untracked') return adoptOrLeave(context, environments, request, candidate.path)
  const usable = usableRow(context, request, candidate.environment)
  const environment = await (work.type === 'pr' ? usable : usable.catch(unlessBlocked(context)))
  return environment && shareIfAllowed(context, request, environment)
}

/** An environment keeps its branch when its work is moved to another one. */
const holdersOfBranch = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  request: RequestWithOrigin,
): Promise<IsolatedEnvironment[]> => {
  const { codebase, branch, work, hints } = request
  const holderOf = (name: string): Promise<IsolatedEnvironment | undefined> =>
    context.store.environments.liveByBranch(codebase.id, name)
  if (branch !== undefined || work.type === 'issue' || work.type === 'task') {
    const holder = await holderOf(branch ?? branchForWork(work, context.clock()))
    return holder === undefined ? [] : [holder]
  }
  // A pull request of this repository works on its own branch or, if the main working tree has that, on `pr-7`.
  if (work.type !== 'pr' || hints.isForkPR === true || hints.prBranch === undefined) return []
  const holders = [await holderOf(hints.prBranch), await holderOf(branchForWork(work, context.clock()))]
  return holders.filter((holder) => holder !== undefined).filter((holder) => isForPullRequest(holder, work))
}

/** Its work was moved to another environment, so it only has the task that is named after its branch. */
const gaveUpItsWork = ({ id, branch, work }: IsolatedEnvironment): boolean =>
  tasksOfBranch(branch, id).some((task) => sameWork(task, work))

/** A person may choose any branch by name; a pull request that names or resembles one may not, unless it is its own. */
const mayShare = (environment: IsolatedEnvironment, { branch, work }: RequestWithOrigin): boolean =>
  branch !== undefined || mayServe(environment, work, true)

const shareIfAllowed = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  request: RequestWithOrigin,
  environment: IsolatedEnvironment,
): Promise<Found | undefined> => {
  if (mayShare(environment, request)) return share(context, request, environment, environment.work, request.work)
  request.earlierNotices.push(untrustedOffer(environment.work, environment.branch))
  return undefined
}

const findAdoptable = async (context: IsolationContext, request: RequestWithOrigin): Promise<Adoptable | undefined> => {
  for (const provider of await allProviders(context)) {
    const found = provider.can.adopt ? await provider.findAdoptable(context, request) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** One that was merely suggested and can't be adopted, such as another home's, keeps no work from its own worktree. */
const adoptOrLeave = async (
  context: IsolationContext,
  environments: Environments,
  request: RequestWithOrigin,
  path: string,
): Promise<Found | undefined> => {
  const { work, hints } = request
  try {
    return await adopt(context, environments, request, path)
  } catch (error) {
    const isSuggested = work.type !== 'pr' && hints.suggestedBranch !== undefined
    // Git allows longer names of branches than we do.
    if (!isSuggested || !(isAppError(error, 'not-adoptable') || isAppError(error, 'name-invalid'))) throw error
    context.log.warn('a suggested worktree could not be adopted', { path, error: error.message })
    return undefined
  }
}

const adopt = async (
  context: IsolationContext,
  environments: Environments,
  request: RequestWithOrigin,
  at: string,
): Promise<Found> => {
  const { codebase, hints, createdBy } = request
  const work = await freeIdentity(context, request)
  const forFork = !isOwnMessage(work, hints)
  const isHeld = (await missingRow(context, request, work)) !== undefined
  // Throws if it can't be adopted, before the missing one loses its place.
  if (isHeld) await environments.examine(codebase, at, { work, forFork })
  const back = isHeld ? await makeWay(context, request, work) : undefined
  if (back !== undefined) return { outcome: 'resolved', environment: back, how: 'same-work', notices: [] }
  const aliases = linksToRemember(request)
  const environment = await environments.adopt(codebase, at, { work, createdBy, aliases, forFork })
  const { path, branch, trust } = environment
  const notices: Notice[] = [
    { kind: 'adopted', path, branch },
    ...(isTrusted(trust) ? [] : [{ kind: 'adopted-untrusted', branch } as const]),
  ]
  return { outcome: 'resolved', environment, how: 'adopted', notices }
}

/** Saves and forgets this work's missing environment, as creating one does. Returns it if it came back meanwhile. */
const makeWay = (
  context: IsolationContext,
  request: RequestWithOrigin,
  work: Work,
): Promise<IsolatedEnvironment | undefined> => {
  const { codebase, earlierNotices, signal } = request
  const purpose = `adopting a worktree for ${work.type} ${work.id}`
  const replace = async (): Promise<IsolatedEnvironment | undefined> => {
    const missing = await missingRow(context, request, work)
    if (missing === undefined) return undefined
    const replaced = await replaceMissing(context, codebase, missing)
    if (replaced.outcome === 'back') return replaced.environment
    earlierNotices.push(...replaced.notices)
    return undefined
  }
  return locked(context, codebase, purpose, replace, signal)
}

const missingRow = async (
  { store }: Pick<IsolationContext, 'store'>,
  { codebase }: RequestWithOrigin,
  work: Work,
): Promise<IsolatedEnvironment | undefined> => {
  const row = await store.environments.liveByWork(codebase.id, work)
  return row?.status === 'missing' ? row : undefined
}
