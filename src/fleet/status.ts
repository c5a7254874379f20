import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { DoneRefusal } from '../domain/fleet/done-refusal.ts'
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import { isParkedElsewhere, type Item, type ParkReason } from '../domain/fleet/item.ts'
import type { LandingBlock } from '../domain/fleet/landing.ts'
import { respawnDelayMs } from '../domain/fleet/respawn.ts'
import { isPassing, onlyPersonCanChange } from '../domain/fleet/needs-person.ts'
import type { CodebaseId } from '../domain/names.ts'
import { checksDigest } from '../isolation/codebases/formulas.ts'
import type { FleetControl, ItemCounts, PatrolNote } from '../store/fleet/store.ts'
import type { FleetContext } from './context.ts'
import { isHeld } from './formulas/run-formula.ts'
import { DEATH } from './patrol/death.ts'
import { isSupervisorNote } from './patrol/supervisor.ts'
import { membersOf } from './pools.ts'

export type AgentDetails = {
  readonly agent: FleetAgent
  readonly codebase: string
  readonly environment: IsolatedEnvironment | undefined
  readonly item: Item | undefined
}

export type FleetStatus = {
  readonly control: FleetControl
  readonly agents: readonly AgentDetails[]
  readonly pools: readonly {
    readonly name: string
    readonly min: number
    readonly max: number
    readonly live: number
    readonly paused: boolean
  }[]
  readonly items: ItemCounts
  readonly needsYou: readonly NeedsYou[]
}

/** Something that needs a person's decision or action. */
export type NeedsYou =
  | {
      readonly kind: 'parked'
      readonly item: Item
      readonly agent: string | undefined
      /** Whether its agent has a session. */
      readonly running: boolean
      readonly reason: ParkReason | undefined
    }
  /** `coppice done` was refused, and only a person can change why. */
  | { readonly kind: 'refused'; readonly item: number; readonly agent: string; readonly why: DoneRefusal }
  /** Its session has ended and wasn't restarted. */
  | { readonly kind: 'no-session'; readonly item: number | undefined; readonly agent: string }
  | { readonly kind: 'stuck'; readonly item: number | undefined; readonly agent: string; readonly since: number }
  | { readonly kind: 'paused'; readonly why: string }
  /** A landing queue can't go on. */
  | { readonly kind: 'landing-blocked'; readonly codebase: string; readonly why: LandingBlock }

/** Lists each kind of session once, however many agents there are. */
export const fleetStatus = async (
  context: Pick<FleetContext, 'isolation' | 'sessions'>,
  { codebaseId }: { readonly codebaseId?: CodebaseId | undefined } = {},
): Promise<FleetStatus> => {
  const {
    isolation: { store, host, settings },
    sessions,
  } = context
  const control = await store.fleetControl.get(host)
  const all = await store.fleetAgents.live({ host })
  const agents = codebaseId === undefined ? all : all.filter((agent) => agent.codebaseId === codebaseId)
  const running = new Set(
    agents.some(({ state }) => mayHaveSession(state))
      ? (await Promise.all(sessions.all().map((kind) => kind.list())))
          .flat()
          .flatMap(({ name, dead }) => (dead ? [] : [name]))
      : [],
  )
  const codebases = new Map((await store.codebases.list(host)).map((codebase) => [codebase.id, codebase]))
  const seen: AgentDetails[] = []
  for (const agent of agents) seen.push(await agentDetails(store, codebases, agent))
  const blocked = await store.landings.blockedQueues()
  const parked = await store.items.list({ states: ['parked'], ...(codebaseId !== undefined && { codebaseId }) })
  const notes = all.some(({ state }) => state === 'crashed') ? await store.patrolNotes.ofHost(host) : []
  const needs: NeedsYou[] = []
  for (const agent of agents) {
    const isHandled = (await isLeaving(context, agent)) || isBeingRestarted(context, agent, notes)
    if (!isHandled) needs.push(...agentNeeds(agent, running, control, parked))
    const why = await whyRefused(store, agent)
    if (why !== undefined) needs.push(why)
  }
  return {
    control,
    agents: seen,
    pools: settings.pools.map((pool) => ({
      name: pool.name,
      min: pool.min,
      max: pool.max,
      live: membersOf(pool, all).length,
      paused: control.state !== 'up',
    })),
    items: await store.items.counts(codebaseId),
    needsYou: [
      ...(control.state === 'paused' ? [{ kind: 'paused', why: control.why } as const] : []),
      ...parked
        .filter((item) => !isParkedElsewhere(item))
        .map((item): NeedsYou => {
          const agent = all.find(({ itemId }) => itemId === item.id)
          const isRunning = agent !== undefined && mayHaveSession(agent.state) && running.has(agent.name)
          return { kind: 'parked', item, agent: agent?.name, running: isRunning, reason: item.parked }
        }),
      ...blocked.flatMap(({ codebaseId: id, blocked: why }): NeedsYou[] => {
        const codebase = codebases.get(id)
        const isMeant = codebase !== undefined && (codebaseId === undefined || id === codebaseId)
        return isMeant && why !== undefined && !isPassing(why)
          ? [{ kind: 'landing-blocked', codebase: codebase.name, why }]
          : []
      }),
      ...needs,
    ],
  }
}

/** Its formula ends the session and removes the worktree by itself. */
const isLeaving = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  { id, state }: FleetAgent,
): Promise<boolean> => {
  const run = state === 'finishing' ? await isolation.store.formulaRuns.runningOf(id) : undefined
  return run !== undefined && (isHeld({ isolation }, run) || isolation.clock() - run.updatedAt < HANDING_OVER_MS)
}

/** The patrol starts it again, or leaves it to the supervisor or a person, in a while. */
const isBeingRestarted = (
  { isolation: { clock, settings } }: Pick<FleetContext, 'isolation'>,
  { id, state, restarts, itemId }: FleetAgent,
  notes: readonly PatrolNote[],
): boolean => {
  const its = notes.filter(({ subject }) => subject === id)
  const death = its.find(({ what }) => what === DEATH)
  if (state !== 'crashed' || itemId === undefined || death === undefined) return false
  const told = its.flatMap(({ what, reportedAt }) => (isSupervisorNote(what) ? [reportedAt ?? 0] : []))
  const decidedAt = Math.max(
    death.lastSeen + respawnDelayMs(restarts),
    ...told.map((at) => at + settings.supervisorMinutes * 60_000),
  )
  return clock() < decidedAt + 2 * settings.patrolSeconds * 1000
}

/** Between `coppice done` and whoever ends its session from outside, nobody holds the formula. */
const HANDING_OVER_MS = 60_000

const agentNeeds = (
  { name, state, itemId, lastSignAt, session }: FleetAgent,
  running: ReadonlySet<string>,
  { state: fleet }: FleetControl,
  parked: readonly Item[],
): NeedsYou[] => {
  // Already reported with its item.
  if (parked.some(({ id }) => id === itemId)) return []
  if (state === 'stuck') return [{ kind: 'stuck', item: itemId, agent: name, since: lastSignAt }]
  const hasEnded = mayHaveSession(state) && session !== undefined && !running.has(name)
  const isAsleep = fleet === 'up' && (state === 'stopped' || state === 'crashed')
  return hasEnded || isAsleep ? [{ kind: 'no-session', item: itemId, agent: name }] : []
}

/** Why its last `coppice done` was refused, if a person has to do something about it and hasn't yet. */
const whyRefused = async (
  store: FleetContext['isolation']['store'],
  { id, name, itemId, codebaseId }: FleetAgent,
): Promise<Extract<NeedsYou, { kind: 'refused' }> | undefined> => {
  const run = itemId === undefined ? undefined : await store.formulaRuns.latestOfItem(itemId)
  if (itemId === undefined || run?.state !== 'refused' || run.agentId !== id) return undefined
  const codebase = await store.codebases.get(codebaseId)
  const why = run.steps
    .flatMap((step) => step.why ?? [])
    .find((one) => codebase && onlyPersonCanChange(one) && isUnchanged(one, codebase))
  return why && { kind: 'refused', item: itemId, agent: name, why }
}

/** Whether a person hasn't changed it since. */
const isUnchanged = (why: DoneRefusal, { trustedChecks, remote, remoteUrl }: Codebase): boolean => {
  if (why.kind === 'not-approved') return trustedChecks !== checksDigest(why.commands)
  if (why.kind !== 'not-published') return true
  return why.why.kind === 'remote-changed' ? remoteUrl !== why.why.to : remote === undefined
}

const agentDetails = async (
  store: FleetContext['isolation']['store'],
  codebases: ReadonlyMap<CodebaseId, Codebase>,
  agent: FleetAgent,
): Promise<AgentDetails> => ({
  agent,
  codebase: codebases.get(agent.codebaseId)?.name ?? '',
  environment: agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId),
  item: agent.itemId === undefined ? undefined : await store.items.get(agent.itemId),
})
