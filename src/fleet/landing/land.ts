/*
 * Queues a branch or an item's work for its base branch. In: what a person named. Out: the landing, or why it can't
 * land. `queue.ts` works the queue off.
 */
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { Item } from '../../domain/fleet/item.ts'
import { isOpenLanding, type Landing, type LandingBlock } from '../../domain/fleet/landing.ts'
import type { Sha } from '../../domain/names.ts'
import { isTrusted, type Trust } from '../../domain/trust.ts'
import { readRefs } from '../../git/refs.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import { baseOfEnvironment } from '../../isolation/codebases/environment-base.ts'
import { landingTarget } from '../../isolation/codebases/landing/target.ts'
import { branchWork } from '../../isolation/codebases/push-branch.ts'
import { repoOf } from '../../isolation/codebases/repo-of.ts'
import { broughtTips, providerOf } from '../../isolation/provider-of.ts'
import type { FleetContext } from '../context.ts'
import { unapprovedGates } from './gates.ts'

export type LandRequest = {
  readonly what: { readonly item: Item } | { readonly branch: string }
  readonly by: string
  /** It follows the item from now on. */
  readonly conversation?: string | undefined
}

export type LandRefusal =
  | { readonly kind: 'settled'; readonly state: 'landed' | 'closed' }
  | { readonly kind: 'at-work'; readonly agent: string }
  | { readonly kind: 'nothing-done' }
  | { readonly kind: 'pull-request'; readonly url: string }
  | { readonly kind: 'no-branch'; readonly branch: string }
  | { readonly kind: 'is-base'; readonly branch: string }
  | { readonly kind: 'no-commits'; readonly base: string }
  | { readonly kind: 'untrusted'; readonly trust: Trust }
  | { readonly kind: 'blocked'; readonly why: LandingBlock }

export type LandOutcome =
  | {
      readonly outcome: 'queued'
      readonly landing: Landing
      /** It was queued before; nothing was changed. */
      readonly already: boolean
      /** How many are before it. */
      readonly before: number
      /** Gates that a person has to approve first. */
      readonly unapproved: readonly string[] | undefined
    }
  | { readonly outcome: 'refused'; readonly why: LandRefusal }

type Work = {
  readonly branch: string
  readonly sha: Sha
  readonly baseBranch: string | undefined
}

export const land = async (context: FleetContext, codebase: Codebase, request: LandRequest): Promise<LandOutcome> => {
  const { store } = context.isolation
  const item = 'item' in request.what ? request.what.item : await itemOfBranch(context, codebase, request.what.branch)
  const why = item && (await whyNotItem(context, item))
  if (why !== undefined) return { outcome: 'refused', why }
  const work =
    item === undefined
      ? await workOfBranch(context, codebase, 'branch' in request.what ? request.what.branch : '')
      : await workOfItem(context, codebase, item)
  if ('kind' in work) return { outcome: 'refused', why: work }
  const { base, config } = await baseAndConfig(context.isolation, codebase)
  const target = await landingTarget(context.isolation, codebase, work.baseBranch ?? base.branch ?? base.name)
  if ('blocked' in target) return { outcome: 'refused', why: { kind: 'blocked', why: target.blocked } }
  const { landing, already } = await enqueue(context, codebase, item, work, request)
  const pending = await store.landings.pending(codebase.id)
  const before = pending.filter((one) => isOpenLanding(one) && one.id < landing.id).length
  const unapproved = await unapprovedGates(context, codebase, config)
  return { outcome: 'queued', landing, already, before, unapproved }
}

const enqueue = (
  { isolation, notify }: FleetContext,
  codebase: Codebase,
  item: Item | undefined,
  { branch, sha, baseBranch }: Work,
  { by, conversation }: LandRequest,
): Promise<{ readonly landing: Landing; readonly already: boolean }> => {
  const { store, clock } = isolation
  return store.transaction(async (inside) => {
    const open = (await inside.landings.pending(codebase.id)).find(
      (one) => isOpenLanding(one) && one.branch === branch && one.sha === sha,
    )
    if (open !== undefined) return { landing: open, already: true }
    const at = clock()
    const created = { codebaseId: codebase.id, itemId: item?.id, branch, sha, baseBranch, createdBy: by, createdAt: at }
    const landing = await inside.landings.enqueue(created)
    if (item !== undefined) {
      const change = { kind: 'state', from: item.state, to: 'in_review' } as const
      const isHere =
        item.state === 'in_review' ||
        (await inside.items.move(item.id, { from: item.state, to: 'in_review', change, by, at }))
      if (!isHere) throw new AppError('busy', `item ${item.id} has just been changed`, { remedy: 'try again' })
      if (conversation !== undefined) await inside.items.follow(item.id, conversation, at)
      await notify(inside, { kind: 'queued', item: { ...item, state: 'in_review' }, landing: landing.id }, conversation)
    }
    return { landing, already: false }
  })
}

/** An unfinished item's branch lands as the item's. */
const itemOfBranch = async (
  { isolation: { store } }: FleetContext,
  codebase: Codebase,
  branch: string,
): Promise<Item | undefined> => {
  const environment = await store.environments.liveByBranch(codebase.id, branch)
  const items = environment === undefined ? [] : await store.items.ofEnvironments([environment.id])
  return items.find(({ state }) => state !== 'landed' && state !== 'closed')
}

const whyNotItem = async (
  { isolation: { store } }: FleetContext,
  { id, state, pullRequest }: Item,
): Promise<LandRefusal | undefined> => {
  if (state === 'landed' || state === 'closed') return { kind: 'settled', state }
  const [agent] = await store.fleetAgents.ofItems([id])
  if (agent !== undefined) return { kind: 'at-work', agent: agent.name }
  if (state === 'open' || state === 'hooked') return { kind: 'nothing-done' }
  return pullRequest === undefined ? undefined : { kind: 'pull-request', url: pullRequest }
}

const workOfItem = async (context: FleetContext, codebase: Codebase, item: Item): Promise<Work | LandRefusal> => {
  const { store } = context.isolation
  const environment = item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
  if (environment?.status === 'active') return workIn(context, codebase, environment)
  // Its worktree is gone, and `done` has pushed this.
  const run = await store.formulaRuns.latestOfItem(item.id)
  if (run?.sha === undefined) return { kind: 'nothing-done' }
  return { branch: run.branch, sha: run.sha, baseBranch: environment?.baseBranch }
}

const workOfBranch = async (context: FleetContext, codebase: Codebase, branch: string): Promise<Work | LandRefusal> => {
  const { isolation } = context
  const environment = await isolation.store.environments.liveByBranch(codebase.id, branch)
  if (environment !== undefined) return workIn(context, codebase, environment)
  // A fork's pull request without its worktree: nobody knows any more who vouched for it.
  if (/^pr-\d+-review$/.test(branch)) return { kind: 'untrusted', trust: 'unproven' }
  const names = [
    `refs/heads/${branch}`,
    ...(codebase.remote === undefined ? [] : [`refs/remotes/${codebase.remote}/${branch}`]),
  ]
  const refs = await readRefs(isolation.git, repoOf(codebase), names)
  const ref = names.find((name) => refs.has(name))
  if (ref === undefined) return { kind: 'no-branch', branch }
  const { base } = await baseAndConfig(isolation, codebase)
  return workAt(context, codebase, {
    branch,
    ref,
    base: base.sha,
    baseName: base.branch ?? base.name,
    baseBranch: undefined,
  })
}

const workIn = async (
  context: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Work | LandRefusal> => {
  const { isolation } = context
  const { trust, branch, baseBranch } = environment
  const provider = await providerOf(isolation, environment)
  const isOurs =
    isTrusted(trust) &&
    (trust === 'own' || (await provider.isVouched(isolation, codebase, environment, { signal: undefined })))
  if (!isOurs) return { kind: 'untrusted', trust }
  const { refs, problems } = await broughtTips(isolation, codebase, [environment])
  const ref = refs.get(environment.id)
  if (ref === undefined || problems.has(environment.id)) return { kind: 'no-branch', branch }
  const base = await baseOfEnvironment(isolation, codebase, environment)
  return workAt(context, codebase, { branch, ref, base: base.sha, baseName: base.branch ?? base.name, baseBranch })
}

const workAt = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  {
    branch,
    ref,
    base,
    baseName,
    baseBranch,
  }: Omit<Work, 'sha'> & {
    readonly ref: string
    readonly base: Sha
    readonly baseName: string
  },
): Promise<Work | LandRefusal> => {
  if (branch === baseName || branch === codebase.baseBranch) return { kind: 'is-base', branch }
  const work = await branchWork(isolation, codebase, { ref, base })
  if (work === undefined) return { kind: 'no-branch', branch }
  return work.commits === 0 ? { kind: 'no-commits', base: baseName } : { branch, sha: work.tip, baseBranch }
}
