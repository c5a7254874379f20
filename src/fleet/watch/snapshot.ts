/*
 * What `fleet watch` shows. In: the fleet's records and sessions, and what git knows about the worktrees. Out: a row for
 * each agent and for each item that waits without one, those that need a person first.
 */
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent, FleetAgentState } from '../../domain/fleet/agent.ts'
import { isParkedElsewhere, type Item } from '../../domain/fleet/item.ts'
import type { Landing } from '../../domain/fleet/landing.ts'
import type { CodebaseId } from '../../domain/names.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import type { FleetContext } from '../context.ts'
import { logFile } from '../sessions/paths.ts'
import { type FleetStatus, fleetStatus, type NeedsYou } from '../status.ts'
import type { TreeFacts, TreeFactsCache, WatchedTree } from './tree-facts.ts'

export type WatchRow = {
  /** The same as long as its agent is, or its item if it has none. */
  readonly key: string
  /** Undefined for an item that waits without one, and for what needs a person about the fleet as a whole. */
  readonly agent: FleetAgent | undefined
  readonly item: Item | undefined
  /** Its item is in the landing queue. */
  readonly landing: Landing | undefined
  readonly codebase: string
  readonly environment: IsolatedEnvironment | undefined
  /** Undefined until git has been asked. */
  readonly facts: TreeFacts | undefined
  /** When its agent last printed something, or was last known to do anything. */
  readonly lastSignAt: number | undefined
  readonly needs: readonly NeedsYou[]
}

export type FleetSnapshot = {
  readonly at: number
  readonly control: FleetStatus['control']
  readonly pools: FleetStatus['pools']
  readonly items: FleetStatus['items']
  readonly rows: readonly WatchRow[]
}

export type WatchContext = Pick<FleetContext, 'isolation' | 'sessions'>

/** Asks the store and the sessions, and no git: the facts of the worktrees are those of the last refresh. */
export const fleetSnapshot = async (
  context: WatchContext,
  facts: Pick<TreeFactsCache, 'of'>,
  { codebaseId }: { readonly codebaseId?: CodebaseId | undefined } = {},
): Promise<FleetSnapshot> => {
  const { store, host, home, clock } = context.isolation
  const { control, pools, items, agents, needsYou } = await fleetStatus(context, { codebaseId })
  const names = new Map((await store.codebases.list(host)).map(({ id, name }) => [id, name]))
  const landings = new Map((await store.landings.pending()).map((landing) => [landing.itemId, landing]))
  const rows: WatchRow[] = agents.map(({ agent, item, codebase, environment }) => ({
    key: agent.id,
    agent,
    item,
    landing: item && landings.get(item.id),
    codebase,
    environment,
    facts: environment && facts.of(environment.id),
    lastSignAt: Math.max(agent.lastSignAt, lastPrintedAt(home, agent.name)),
    needs: needsYou.filter((need) => isAbout(need, agent.name, item?.id)),
  }))
  const withAgent = new Set((await store.fleetAgents.live({ host })).map(({ itemId }) => itemId))
  const waiting = await store.items.list({
    states: ['parked', 'in_review'],
    ...(codebaseId !== undefined && { codebaseId }),
  })
  for (const item of waiting) {
    if (withAgent.has(item.id) || isParkedElsewhere(item)) continue
    const environment = item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
    rows.push({
      key: `item ${item.id}`,
      agent: undefined,
      item,
      landing: landings.get(item.id),
      codebase: names.get(item.codebaseId) ?? '',
      environment,
      facts: environment && facts.of(environment.id),
      lastSignAt: undefined,
      needs: needsYou.filter((need) => isAbout(need, undefined, item.id)),
    })
  }
  for (const need of needsYou) {
    if ('agent' in need) continue
    const codebase = 'codebase' in need ? need.codebase : ''
    rows.push({ ...ofFleet, key: `${need.kind} ${codebase}`, codebase, needs: [need] })
  }
  return { at: clock(), control, pools, items, rows: sortedRows(rows) }
}

/** The worktrees of these rows, for `TreeFactsCache.refresh`. */
export const watchedTrees = async (
  { isolation: { store, host } }: WatchContext,
  rows: readonly WatchRow[],
): Promise<readonly WatchedTree[]> => {
  const codebases = new Map((await store.codebases.list(host)).map((codebase) => [codebase.id, codebase]))
  return rows.flatMap(({ environment, lastSignAt }) => {
    const codebase = environment && codebases.get(environment.codebaseId)
    return environment === undefined || codebase === undefined ? [] : [{ environment, codebase, lastSignAt }]
  })
}

/** Those that need a person, then those that don't work, each by state and name. */
export const sortedRows = (rows: readonly WatchRow[]): readonly WatchRow[] =>
  rows.toSorted(
    (a, b) =>
      Number(b.needs.length > 0) - Number(a.needs.length > 0) ||
      stateRank(a) - stateRank(b) ||
      (a.agent?.name ?? '').localeCompare(b.agent?.name ?? '') ||
      (a.item?.id ?? 0) - (b.item?.id ?? 0),
  )

const stateRank = ({ agent, item }: WatchRow): number => {
  if (agent === undefined) return item === undefined ? -1 : item.state === 'parked' ? order.length : order.length + 1
  return order.indexOf(agent.state)
}

const order: readonly FleetAgentState[] = [
  'crashed',
  'stuck',
  'stopped',
  'draining',
  'spawning',
  'finishing',
  'working',
  'gone',
]

const ofFleet = {
  agent: undefined,
  item: undefined,
  landing: undefined,
  environment: undefined,
  facts: undefined,
  lastSignAt: undefined,
} as const

const isAbout = (need: NeedsYou, agent: string | undefined, item: number | undefined): boolean => {
  if (!('agent' in need)) return false
  if (agent !== undefined && need.agent === agent) return true
  const about = typeof need.item === 'object' ? need.item.id : need.item
  return item !== undefined && about === item
}

/** The log of a session gets all of its output. */
const lastPrintedAt = (home: string, name: string): number => lstatIfThere(logFile(home, name))?.mtimeMs ?? 0
