import type { Codebase } from '../../domain/environment.ts'
import { type FleetAgent, isBeingStopped } from '../../domain/fleet/agent.ts'
import type { PoolSettings } from '../../domain/fleet/pool.ts'
import type { FleetContext } from '../context.ts'
import { membersOf } from '../pools.ts'
import { removeAgent } from '../remove-agent.ts'
import { stopAgent } from '../stop-agent.ts'

/** Running workers without an item, in this codebase. */
export const idleWorkers = async (
  { isolation: { store, host } }: Pick<FleetContext, 'isolation'>,
  pool: PoolSettings,
  codebase: Codebase,
): Promise<readonly FleetAgent[]> =>
  membersOf(pool, await store.fleetAgents.live({ host, codebaseId: codebase.id })).filter(isIdle)

export const isIdle = ({ kind, state, itemId }: FleetAgent): boolean =>
  kind === 'worker' && state === 'working' && itemId === undefined

/**
 * Ends the session, and removes the worktree if the gates allow it. Does nothing if the worker has been given an item.
 */
export const retireWorker = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  if (!(await reserve(context, agent))) return
  await context.isolation.failpoint('retire.reserved')
  await finishRetiring(context, agent)
}

/** For a worker that `retireWorker` has reserved. Safe to repeat. */
export const finishRetiring = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  const { store } = context.isolation
  try {
    if ((await stopAgent(context, agent)).outcome !== 'stopped') return
    const stopped = await store.fleetAgents.get(agent.id)
    if (stopped !== undefined && stopped.itemId === undefined) await removeAgent(context, stopped)
  } finally {
    // Only if some of its processes are still running: the next round tries again.
    await store.fleetAgents.move(agent.id, 'draining', 'working')
  }
}

/** Prevents anybody from giving it an item. False if it has just been given one. */
const reserve = ({ isolation: { store, host, self } }: FleetContext, { id, spawn }: FleetAgent): Promise<boolean> =>
  store.transaction(async (inside) => {
    await inside.fleetControl.lock(host)
    const now = await inside.fleetAgents.get(id)
    if (now === undefined || !isIdle(now) || now.spawn !== spawn) return false
    return inside.fleetAgents.move(id, 'working', 'draining', { holder: self })
  })

/** Reserved by `retireWorker`, or stopped without an item: nothing is lost if it goes. */
export const isRetiring = (agent: FleetAgent): boolean =>
  agent.kind === 'worker' && agent.itemId === undefined && isBeingStopped(agent)
