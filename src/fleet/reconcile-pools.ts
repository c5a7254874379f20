/*
 * Brings the pools to their configured size. In: the pools, the agents of this host, the items that are ready. Out:
 * workers for ready items (`pull`), at least `min` and at most `max`. Excess workers finish their item first. Starts
 * nothing unless a pool has `pull` or `min`.
 */
import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import type { FleetContext } from './context.ts'
import { membersOf, worksFor } from './pools.ts'
import { removeAgent } from './remove-agent.ts'
import { isIdle, retireWorker } from './sling/idle-workers.ts'
import { sling, spawnIdle } from './sling/sling.ts'
import { stopAgent } from './stop-agent.ts'

export type PoolsReport = {
  readonly started: readonly string[]
  readonly draining: readonly string[]
  readonly gone: readonly string[]
  readonly problems: readonly { readonly pool: string; readonly why: string }[]
}

const BY = 'fleet'

/** One round. Safe to repeat and to run in several processes at once: `sling` settles who gets an item. */
export const reconcilePools = async (context: FleetContext): Promise<PoolsReport> => {
  const { store, host, settings } = context.isolation
  const { state } = await store.fleetControl.get(host)
  const report = { started: [] as string[], draining: [] as string[], gone: [] as string[], problems: [] as Problem[] }
  if (state !== 'up') return report
  const agents = await store.fleetAgents.live({ host })
  for (const pool of [...settings.pools, ...removedPools(settings.pools, agents)]) {
    try {
      await drain(context, pool, report)
      if (pool.max > 0) await fill(context, pool, report)
    } catch (error) {
      report.problems.push({ pool: pool.name, why: toAppError(error).message })
    }
  }
  return report
}

type Problem = PoolsReport['problems'][number]
type Report = { started: string[]; draining: string[]; gone: string[]; problems: Problem[] }

/** Whether a round could ever start an agent. If not, a server needs no timer. */
export const mayStartAgents = (pools: readonly PoolSettings[]): boolean =>
  pools.some(({ pull, min }) => pull || min > 0)

/** Pools that are no longer configured but still have agents, with room for none. */
const removedPools = (pools: readonly PoolSettings[], agents: readonly FleetAgent[]): PoolSettings[] => {
  const names = new Set(agents.flatMap(({ pool }) => (pool === undefined ? [] : [pool])))
  const [first] = pools
  if (first === undefined) return []
  const unknown = [...names].filter((name) => pools.every((pool) => pool.name !== name))
  return unknown.map((name) => ({ ...first, name, min: 0, max: 0, pull: false }))
}

const liveMembers = async ({ isolation: { store, host } }: FleetContext, pool: PoolSettings): Promise<FleetAgent[]> => [
  ...membersOf(pool, await store.fleetAgents.live({ host })),
]

/** Removes idle workers first, then the newest. A worker with an item may finish it within `drainTimeout`. */
const drain = async (context: FleetContext, pool: PoolSettings, report: Report): Promise<void> => {
  const { store, clock } = context.isolation
  const members = await liveMembers(context, pool)
  const excess = new Set(
    members
      .toSorted((a, b) => rank(a) - rank(b) || b.createdAt - a.createdAt)
      .slice(0, Math.max(0, members.length - pool.max))
      .map(({ id }) => id),
  )
  for (const member of members) {
    if (!excess.has(member.id)) {
      if (member.state === 'draining' && member.drainingSince !== undefined) {
        await store.fleetAgents.move(member.id, 'draining', 'working', { drainingSince: undefined })
      }
      continue
    }
    await drainOne(context, pool, member, clock(), report)
  }
}

/** The lowest go first. */
const rank = (agent: FleetAgent): number => (agent.state === 'draining' ? 0 : agent.itemId === undefined ? 1 : 2)

const drainOne = async (
  context: FleetContext,
  pool: PoolSettings,
  member: FleetAgent,
  now: number,
  report: Report,
): Promise<void> => {
  const { store } = context.isolation
  if (member.itemId === undefined) {
    if (isIdle(member)) await retireWorker(context, member)
    else if (member.state === 'stopped') await removeAgent(context, member)
    if ((await store.fleetAgents.get(member.id))?.state === 'gone') report.gone.push(member.name)
    return
  }
  if (member.state === 'working' || member.state === 'stuck') {
    const drainingSince = member.drainingSince ?? now
    if (await store.fleetAgents.move(member.id, member.state, 'draining', { drainingSince })) {
      report.draining.push(member.name)
    }
    return
  }
  const since = member.drainingSince
  if (member.state !== 'draining' || since === undefined || now - since < pool.drainTimeoutMs) return
  // Keeps its hook and worktree, so that `sling` or `fleet up` can continue.
  if ((await stopAgent(context, member)).outcome === 'stopped') report.gone.push(member.name)
}

const fill = async (context: FleetContext, pool: PoolSettings, report: Report): Promise<void> => {
  const codebases = await codebasesOf(context, pool)
  if (codebases.length === 0) return
  if (pool.pull) await pull(context, pool, codebases, report)
  for (;;) {
    const members = await liveMembers(context, pool)
    const atWork = members.filter(({ state }) => state !== 'stopped' && state !== 'crashed')
    if (atWork.length >= pool.min) return
    const agent = await spawnIdle(context, { pool, codebase: leastStaffed(codebases, members), by: BY })
    if (agent === undefined) return
    report.started.push(agent.name)
  }
}

/** Starts ready items, most urgent first, until the pool is full. */
const pull = async (
  context: FleetContext,
  pool: PoolSettings,
  codebases: readonly Codebase[],
  report: Report,
): Promise<void> => {
  const { store } = context.isolation
  const codebaseIds = codebases.map(({ id }) => id)
  for (const item of await store.items.ready({ codebaseIds, limit: pool.max + MOST_FAILING })) {
    try {
      const slung = await sling(context, { item: item.id, pool: pool.name, by: BY })
      if (slung.outcome === 'started') report.started.push(slung.agent.name)
      // Further items would hit the same limit.
      else if (slung.outcome === 'limit' || slung.why.kind.endsWith('-full')) return
    } catch (error) {
      // An item that can't be started must not block the others.
      report.problems.push({ pool: pool.name, why: `item ${item.id}: ${toAppError(error).message}` })
    }
  }
}

/** So many items that can't be started keep nobody waiting. */
const MOST_FAILING = 100

const codebasesOf = async (
  { isolation: { store, host } }: FleetContext,
  pool: PoolSettings,
): Promise<readonly Codebase[]> => (await store.codebases.list(host)).filter((codebase) => worksFor(pool, codebase))

/** The codebase in which the next idle worker waits: the one with the fewest members. */
const leastStaffed = (codebases: readonly Codebase[], members: readonly FleetAgent[]): Codebase => {
  const count = ({ id }: Codebase): number => members.filter(({ codebaseId }) => codebaseId === id).length
  const [first, ...others] = codebases
  if (first === undefined) throw new Error('no codebase')
  return others.reduce((least, one) => (count(one) < count(least) ? one : least), first)
}
