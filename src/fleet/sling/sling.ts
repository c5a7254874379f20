/*
 * Gives an item to an agent. In: an item, a pool or crew member, and who asks. Out: an agent whose program is running,
 * or the reason why not. `hook.ts` decides who gets the item, `spawn.ts` starts a new agent, `assign.ts` uses one that
 * already runs, `idle-workers.ts` finds and retires those that wait, `undo-sling.ts` undoes a failed or interrupted
 * start.
 */
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { PoolSettings } from '../../domain/fleet/pool.ts'
import type { FleetContext } from '../context.ts'
import { itemNumbered } from '../items/add.ts'
import { poolFor, poolNamed, worksFor } from '../pools.ts'
import { programFor } from '../program.ts'
import { recoverStart } from '../recover-start.ts'
import { restartAgent } from '../restart-agent.ts'
import { stopEnded } from '../stop-ended.ts'
import { assign, assignToCrew, resume } from './assign.ts'
import { type Asker, hookNewAgent, whyNotNow, whyNotUp } from './hook.ts'
import { idleWorkers, retireWorker } from './idle-workers.ts'
import type { SlingOutcome } from './outcome.ts'
import { spawn } from './spawn.ts'

export type SlingRequest = Asker & {
  readonly item: number
  /** Default: the first pool that works for the item's codebase. */
  readonly pool?: string | undefined
  /** Give it to this crew member instead. */
  readonly crew?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export const sling = async (context: FleetContext, request: SlingRequest): Promise<SlingOutcome> => {
  const { store } = context.isolation
  let item = await itemNumbered(store, request.item)
  const codebase = await codebaseOf(context, item)
  let [hooked] = await store.fleetAgents.ofItems([item.id])
  // Paths, processes and sessions are valid only on their own host.
  const isElsewhere = [codebase, ...(hooked === undefined ? [] : [hooked])].some(
    ({ host }) => host !== context.isolation.host,
  )
  if (isElsewhere) return { outcome: 'refused', item, why: { kind: 'other-host' } }
  if (hooked !== undefined && (await recoverStart(context, hooked))) {
    item = await itemNumbered(store, item.id)
    ;[hooked] = await store.fleetAgents.ofItems([item.id])
  }
  const down = await store.transaction((inside) => whyNotUp(context, inside))
  if (down !== undefined) return { outcome: 'refused', item, why: down }
  if (hooked !== undefined) hooked = await stopEnded(context, hooked)
  // An item that already has an agent continues with that one, in its worktree.
  if (hooked !== undefined && (hooked.state === 'stopped' || hooked.state === 'crashed')) {
    const { agent, environment } = await restartAgent(context, hooked, item, { ...request, unpark: true })
    return started(context, { agent, environment, codebase, notices: [] }, item)
  }
  if (hooked !== undefined && item.state === 'parked' && hooked.state === 'working') {
    return resume(context, request, { item, codebase, agent: hooked })
  }
  const early = await whyNotNow(store, request, item)
  if (early !== undefined) return { outcome: 'refused', item, why: early }
  if (request.crew !== undefined) return assignToCrew(context, request, { item, codebase, name: request.crew })
  return toWorker(context, request, item, codebase)
}

const toWorker = async (
  context: FleetContext,
  request: SlingRequest,
  item: Item,
  codebase: Codebase,
): Promise<SlingOutcome> => {
  const { isolation } = context
  const pool = request.pool === undefined ? poolFor(isolation, codebase) : poolNamed(isolation, request.pool)
  if (!worksFor(pool, codebase)) {
    return { outcome: 'refused', item, why: { kind: 'other-codebase', pool: pool.name, codebase: codebase.name } }
  }
  const idle = item.environmentId === undefined ? await idleWorkers(context, pool, codebase) : []
  for (const worker of idle) {
    const assigned = await assign(context, request, { item, codebase, agent: worker })
    if (assigned === 'taken') continue
    if (assigned !== 'outdated') return assigned
    // Its worktree is out of date or has changes: retire it to make room for a new worker.
    await retireWorker(context, worker)
  }
  const program = await programFor(context, pool, codebase)
  const hook = await hookNewAgent(context, request, { item, pool, codebase, program })
  if ('why' in hook) return { outcome: 'refused', item, why: hook.why }
  const { by, conversation, signal } = request
  const spawned = await spawn(context, { ...hook, pool, codebase, by, conversation, signal })
  return 'report' in spawned
    ? { outcome: 'limit', report: spawned.report }
    : started(context, { ...spawned, codebase }, item)
}

export const started = async (
  { isolation: { store } }: FleetContext,
  began: Omit<Extract<SlingOutcome, { outcome: 'started' }>, 'outcome' | 'item'>,
  item: Item,
): Promise<SlingOutcome> => ({ outcome: 'started', ...began, item: (await store.items.get(item.id)) ?? item })

const codebaseOf = async ({ isolation: { store } }: FleetContext, item: Item): Promise<Codebase> => {
  const codebase = await store.codebases.get(item.codebaseId)
  if (codebase === undefined) throw new AppError('not-found', `the repository of item ${item.id} isn't registered`)
  return codebase
}

/** Starts a worker without an item, for a pool with `min`. */
export const spawnIdle = async (
  context: FleetContext,
  { pool, codebase, by }: { readonly pool: PoolSettings; readonly codebase: Codebase; readonly by: string },
): Promise<FleetAgent | undefined> => {
  const program = await programFor(context, pool, codebase)
  const hook = await hookNewAgent(context, { by }, { item: undefined, pool, codebase, program })
  if ('why' in hook) return undefined
  const spawned = await spawn(context, { ...hook, pool, codebase, by })
  return 'report' in spawned ? undefined : spawned.agent
}
