/*
 * Giving an item to an agent. In: an item, a pool, who asks. Out: an agent whose program runs, or why not. Each step is
 * recorded before its effect; `undo-sling.ts` takes back what a failed or interrupted one has made.
 */
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import { type Item, isSettled } from '../domain/fleet/item.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import { toWork } from '../domain/work.ts'
import type { Notice } from '../domain/notice.ts'
import type { LimitReport } from '../isolation/resolve/resolution.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'
import type { Store } from '../store/store.ts'
import type { FleetContext } from './context.ts'
import { freeNames } from './names.ts'
import { membersOf, poolFor, poolNamed, worksFor } from './pools.ts'
import { programFor } from './program.ts'
import { startSession } from './start-session.ts'
import { undoSling } from './undo-sling.ts'
import { wakeAgent } from './wake.ts'

export type SlingRequest = {
  readonly item: number
  /** Default: the first pool that works for the item's codebase. */
  readonly pool?: string | undefined
  readonly by: string
  /** The conversation that is told what becomes of the item. */
  readonly conversation?: string | undefined
  readonly signal?: AbortSignal
}

export type Slung =
  | {
      readonly outcome: 'started'
      readonly agent: FleetAgent
      readonly item: Item
      readonly environment: IsolatedEnvironment
      readonly codebase: Codebase
      readonly notices: readonly Notice[]
    }
  | { readonly outcome: 'refused'; readonly item: Item; readonly why: SlingRefusal }
  /** The codebase has as many worktrees as it may. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }

export type SlingRefusal =
  | { readonly kind: 'settled'; readonly state: 'landed' | 'closed' }
  | { readonly kind: 'in-review' }
  | { readonly kind: 'hooked'; readonly agent: string }
  | { readonly kind: 'waits'; readonly after: readonly number[] }
  | { readonly kind: 'other-codebase'; readonly pool: string; readonly codebase: string }
  | { readonly kind: 'pool-full'; readonly pool: string; readonly max: number }
  | { readonly kind: 'fleet-full'; readonly max: number }
  | { readonly kind: 'fleet-down' }
  | { readonly kind: 'fleet-paused'; readonly why: string }

export const sling = async (context: FleetContext, request: SlingRequest): Promise<Slung> => {
  const { isolation } = context
  const item = await isolation.store.items.get(request.item)
  if (item === undefined) throw new AppError('not-found', `there is no item ${request.item}`)
  const [hooked] = await isolation.store.fleetAgents.ofItems([item.id])
  // Parked with its agent: that one continues in its own worktree.
  if (item.state === 'parked' && hooked !== undefined) {
    const awake = await wakeAgent(context, hooked, item, request)
    return { outcome: 'started', ...awake, item: (await isolation.store.items.get(item.id)) ?? item, notices: [] }
  }
  const codebase = await isolation.store.codebases.get(item.codebaseId)
  if (codebase === undefined) throw new AppError('not-found', `item ${item.id} is of an unknown repository`)
  const pool = request.pool === undefined ? poolFor(isolation, codebase) : poolNamed(isolation, request.pool)
  if (!worksFor(pool, codebase)) {
    return refused(item, { kind: 'other-codebase', pool: pool.name, codebase: codebase.name })
  }
  const early = await refusal(isolation.store, item)
  if (early !== undefined) return refused(item, early)
  const program = await programFor(context, pool, codebase)
  const hook = await hookItem(context, request, { item, pool, codebase, program })
  if ('why' in hook) return refused(item, hook.why)
  return spawn(context, request, { ...hook, pool, codebase })
}

const refused = (item: Item, why: SlingRefusal): Slung => ({ outcome: 'refused', item, why })

/** Why the item can't be given to anybody now. */
const refusal = async (store: Store, item: Item): Promise<SlingRefusal | undefined> => {
  const { state } = item
  if (state === 'landed' || state === 'closed') return { kind: 'settled', state }
  if (state === 'in_review') return { kind: 'in-review' }
  const [agent] = await store.fleetAgents.ofItems([item.id])
  if (agent !== undefined) return { kind: 'hooked', agent: agent.name }
  const needed = await Promise.all(item.after.map((id) => store.items.get(id)))
  const after = needed.flatMap((one) => (one !== undefined && !isSettled(one.state) ? [one.id] : []))
  return after.length === 0 ? undefined : { kind: 'waits', after }
}

type Hooking = {
  readonly item: Item
  readonly pool: PoolSettings
  readonly codebase: Codebase
  readonly program: string
}

type Hooked = { readonly agent: FleetAgent; readonly item: Item }

/**
 * The name, the agent's row and the hook, in one transaction: of two that want the same item or the same name, one gets
 * it.
 */
const hookItem = async (
  context: FleetContext,
  { by, conversation }: SlingRequest,
  { item, pool, codebase, program }: Hooking,
): Promise<Hooked | { readonly why: SlingRefusal }> => {
  const { isolation } = context
  const { store, clock, ids, host, self } = isolation
  const kept = item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
  // An environment that the item has keeps the name of the agent that it was made for.
  const names = kept?.status === 'active' ? [kept.work.id] : freeNames(context, pool, codebase.id)
  for await (const name of names) {
    const now = clock()
    const agent: FleetAgent = {
      id: ids(),
      host,
      name,
      kind: 'worker',
      pool: pool.name,
      codebaseId: codebase.id,
      program,
      state: 'spawning',
      itemId: item.id,
      environmentId: kept?.status === 'active' ? kept.id : undefined,
      spawn: ids(),
      session: undefined,
      restarts: 0,
      lastSignAt: now,
      workedAt: undefined,
      holder: self,
      createdAt: now,
      endedAt: undefined,
    }
    const outcome = await store.transaction(async (inside): Promise<Hooked | { why: SlingRefusal } | 'name-taken'> => {
      const full = await noRoom(context, inside, pool)
      if (full !== undefined) return { why: full }
      const current = (await inside.items.get(item.id)) ?? item
      const why = await refusal(inside, current)
      if (why !== undefined) return { why }
      const inserted = await inside.fleetAgents.insert(agent)
      if (inserted === 'name-taken') return 'name-taken'
      const change = { kind: 'hooked', from: current.state, agent: name, pool: pool.name } as const
      const move = { from: current.state, to: 'hooked', change, by, at: now } as const
      if (inserted === 'item-taken' || !(await inside.items.move(item.id, move))) {
        // Thrown, so that nothing of this transaction stays.
        throw new AppError('busy', `somebody else has just taken item ${item.id}`)
      }
      if (conversation !== undefined) await inside.items.follow(item.id, conversation, now)
      return { agent, item: { ...current, state: 'hooked' } }
    })
    if (outcome !== 'name-taken') return outcome
  }
  throw new AppError('name-invalid', `the pool ${pool.name} has no names`)
}

/** Checked while no other spawn of this host can be decided. */
const noRoom = async (
  { isolation: { settings, host } }: FleetContext,
  store: Store,
  pool: PoolSettings,
): Promise<SlingRefusal | undefined> => {
  const control = await store.fleetControl.lock(host)
  if (control.state === 'down') return { kind: 'fleet-down' }
  if (control.state === 'paused') return { kind: 'fleet-paused', why: control.why }
  const agents = await store.fleetAgents.live({ host })
  if (membersOf(pool, agents).length >= pool.max) return { kind: 'pool-full', pool: pool.name, max: pool.max }
  const workers = agents.filter(({ kind }) => kind === 'worker').length
  return workers >= settings.maxAgents ? { kind: 'fleet-full', max: settings.maxAgents } : undefined
}

type Spawning = Hooked & { readonly pool: PoolSettings; readonly codebase: Codebase }

/** Environment, session, and the agent is at work. After a failure, exactly what this made is undone. */
const spawn = async (context: FleetContext, request: SlingRequest, spawning: Spawning): Promise<Slung> => {
  const { isolation } = context
  const { store, clock, failpoint } = isolation
  const { agent, item, pool, codebase } = spawning
  try {
    await failpoint('sling.hooked')
    const made = await environmentFor(context, request, spawning)
    if ('report' in made) {
      await undoSling(context, agent.id)
      return { outcome: 'limit', report: made.report }
    }
    const { environment, notices } = made
    await store.transaction(async (inside) => {
      await inside.fleetAgents.update(agent.id, { environmentId: environment.id })
      await inside.items.update(item.id, { environmentId: environment.id })
    })
    await failpoint('sling.placed')
    const placed: FleetAgent = { ...agent, environmentId: environment.id }
    const session = await startSession(context, { agent: placed, item, codebase, environment, pool, resume: false })
    const now = clock()
    const began = { state: 'working', session, workedAt: now, lastSignAt: now } as const
    const isOurs = await store.transaction(async (inside) => {
      const { state, ...patch } = began
      if (!(await inside.fleetAgents.move(agent.id, 'spawning', state, patch))) return false
      const current = (await inside.items.get(item.id)) ?? item
      await context.tell(inside, { kind: 'started', item: current, agent: agent.name })
      return true
    })
    if (!isOurs) throw new AppError('busy', `${agent.name} was stopped while it was starting`)
    await failpoint('sling.working')
    const hooked = (await store.items.get(item.id)) ?? item
    return { outcome: 'started', agent: { ...placed, ...began }, item: hooked, environment, codebase, notices }
  } catch (error) {
    // What can't be undone now is undone later: the row says that its holder is gone.
    await undoSling(context, agent.id).catch((undo: unknown) =>
      isolation.log.error('an agent that failed to start could not be undone', { agent: agent.name, error: undo }),
    )
    throw error
  }
}

type Placed = { readonly environment: IsolatedEnvironment; readonly notices: readonly Notice[] }

const environmentFor = async (
  { isolation, environments }: FleetContext,
  { by, signal }: SlingRequest,
  { agent, codebase, pool }: Spawning,
): Promise<Placed | { readonly report: LimitReport }> => {
  const { environmentId } = agent
  const kept = environmentId === undefined ? undefined : await isolation.store.environments.get(environmentId)
  if (kept !== undefined) return { environment: kept, notices: [] }
  const resolved = await resolveIsolation(isolation, await environments(), {
    codebase,
    work: toWork('agent', agent.name),
    hints: {},
    createdBy: by,
    provider: pool.isolation,
    ...(signal !== undefined && { signal }),
  })
  if (resolved.outcome === 'limit') return { report: resolved.report }
  return { environment: resolved.environment, notices: resolved.notices }
}
