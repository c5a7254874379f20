/*
 * `fleet up`. In: what is left of records, directories, git's worktrees and sessions. Out: every agent working again in
 * its own worktree. `rebuild.ts` recovers agents and items that the database no longer has.
 */
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import { isProvablyDead } from '../isolation/agents-inside.ts'
import type { Item } from '../domain/fleet/item.ts'
import { toAppError } from '../domain/errors.ts'
import { mapConcurrent } from '../isolation/map-concurrent.ts'
import type { FleetContext } from './context.ts'
import { recoverFleet } from './recover.ts'
import { type Rebuilt, rebuildFleet } from './rebuild.ts'
import { removeAgent } from './remove-agent.ts'
import { endStraySessions } from './stray-sessions.ts'
import { restartAgent } from './restart-agent.ts'
import { stopEnded } from './stop-ended.ts'

/** Each start keeps a core busy. */
const AT_ONCE = 4

export type UpReport = {
  /** Their sessions were restarted. */
  readonly started: readonly FleetAgent[]
  /** They were already running. */
  readonly running: readonly FleetAgent[]
  /** They had no item and were removed with their worktrees. */
  readonly released: readonly FleetAgent[]
  /** They have no item, but the gates keep their worktrees. */
  readonly kept: readonly FleetAgent[]
  readonly rebuilt: Rebuilt
  /** Stray sessions that were ended. */
  readonly ended: readonly string[]
  readonly problems: readonly FleetProblem[]
}

export type FleetProblem = { readonly agent: string; readonly why: string }

export type UpRequest = {
  readonly by: string
  /** Only these agents. */
  readonly only?: readonly string[]
}

export const fleetUp = async (context: FleetContext, { by, only = [] }: UpRequest): Promise<UpReport> => {
  const { store, host, clock } = context.isolation
  await store.fleetControl.set(host, { state: 'up', why: '', since: clock() })
  const { left } = await recoverFleet(context)
  const rebuilt = await rebuildFleet(context, { by })
  // What couldn't be rebuilt now may be at work all the same, and is tried again.
  const ended = await endStraySessions(context, { except: rebuilt.problems.map(({ agent }) => agent) })
  const agents = (await store.fleetAgents.live({ host })).filter(({ name }) => only.length === 0 || only.includes(name))
  const outcomes = await mapConcurrent(AT_ONCE, agents, async (agent): Promise<Outcome> => {
    try {
      return await bringUp(context, agent, by)
    } catch (error) {
      return { is: 'problem', agent, why: toAppError(error).message }
    }
  })
  const those = (is: Outcome['is']): FleetAgent[] => outcomes.flatMap((one) => (one.is === is ? [one.agent] : []))
  return {
    started: those('started'),
    running: those('running'),
    released: those('released'),
    kept: those('kept'),
    rebuilt,
    ended,
    problems: [
      ...left,
      ...rebuilt.problems,
      ...outcomes.flatMap((one) => (one.is === 'problem' ? [{ agent: one.agent.name, why: one.why }] : [])),
    ],
  }
}

type Outcome =
  | { readonly is: 'started' | 'running' | 'released' | 'kept'; readonly agent: FleetAgent }
  | { readonly is: 'problem'; readonly agent: FleetAgent; readonly why: string }

const bringUp = async (context: FleetContext, listed: FleetAgent, by: string): Promise<Outcome> => {
  const { store } = context.isolation
  // Read again, because bringing up the others takes a while.
  const found = await stopEnded(context, (await store.fleetAgents.get(listed.id)) ?? listed)
  if (found.state === 'gone') return { is: 'released', agent: found }
  if (found.state === 'spawning') return { is: 'running', agent: found }
  if (mayHaveSession(found.state) && !(await isProvablyDead(context.isolation, found)))
    return { is: 'running', agent: found }
  const agent = await markStopped(context, found)
  if (agent === undefined) return { is: 'running', agent: found }
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  if (agent.kind === 'crew' || item !== undefined) return started(context, agent, item, by)
  const { kept } = await removeAgent(context, agent)
  return { is: kept.length === 0 ? 'released' : 'kept', agent }
}

const started = async (
  context: FleetContext,
  agent: FleetAgent,
  item: Item | undefined,
  by: string,
): Promise<Outcome> => ({ is: 'started', agent: (await restartAgent(context, agent, item, { by })).agent })

/** Records that the session is dead. Undefined if another process changed the row first. */
const markStopped = async (
  { isolation: { store } }: FleetContext,
  agent: FleetAgent,
): Promise<FleetAgent | undefined> => {
  if (!mayHaveSession(agent.state)) return agent
  const isOurs = await store.fleetAgents.move(agent.id, agent.state, 'stopped')
  return isOurs ? { ...agent, state: 'stopped' } : undefined
}
