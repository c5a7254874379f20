/*
 * `fleet down`. In: all agents of this host, or some of them. Out: their sessions are dead, their worktrees and hooks
 * unchanged. `clean` also removes the worktrees that the gates allow.
 */
import type { IsolatedEnvironment } from '../domain/environment.ts'
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import { stopOrder } from '../domain/fleet/pool.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import { toAppError } from '../domain/errors.ts'
import type { FleetContext } from './context.ts'
import { GRACE_MS } from './end-session.ts'
import { hasNoCommits } from './no-commits.ts'
import { recoverFleet } from './recover.ts'
import { removeAgent } from './remove-agent.ts'
import { stopAgent } from './stop-agent.ts'
import { endStraySessions } from './stray-sessions.ts'
import type { FleetProblem } from './up.ts'

export type DownRequest = {
  readonly by: string
  /** Also remove the worktrees that the gates allow. */
  readonly clean?: boolean
  /** Only these agents; the fleet stays up. */
  readonly only?: readonly string[]
  readonly graceMs?: number
}

export type DownReport = {
  readonly stopped: readonly FleetAgent[]
  /** Agents that are gone now. */
  readonly removed: readonly FleetAgent[]
  /** Worktrees that `clean` has kept. */
  readonly kept: readonly KeptWorktree[]
  readonly problems: readonly FleetProblem[]
}

export type KeptWorktree = {
  readonly agent: FleetAgent
  readonly environment: IsolatedEnvironment
  readonly reasons: readonly GateAnswer[]
}

export const fleetDown = async (
  context: FleetContext,
  { by, clean = false, only = [], graceMs = GRACE_MS }: DownRequest,
): Promise<DownReport> => {
  const { store, host, clock, failpoint } = context.isolation
  // Before anything else, so that nothing new starts.
  if (only.length === 0) await store.fleetControl.set(host, { state: 'down', why: by, since: clock() })
  await failpoint('down.intent')
  await recoverFleet(context)
  const isSelected = ({ name }: FleetAgent): boolean => only.length === 0 || only.includes(name)
  const problems = new Map<string, string>()
  const stopped = new Map<string, FleetAgent>()
  const gone = new Map<string, FleetAgent>()
  // Repeated, because an agent may have been starting during the last round.
  for (let round = 0; round < ROUNDS; round += 1) {
    const running = (await store.fleetAgents.live({ host })).filter(
      (one) => isSelected(one) && mayHaveSession(one.state),
    )
    if (running.length === 0) break
    problems.clear()
    for (const group of inStopOrder(context, running)) {
      if (group.length > 0) context.isolation.progress(`stopping ${group.map(({ name }) => name).join(', ')}`)
      await Promise.all(
        group.map(async (agent) => {
          try {
            const result = await stopAgent(context, agent, { graceMs })
            if (result.outcome === 'stopped') stopped.set(agent.id, result.agent)
            else if (result.outcome === 'gone') gone.set(agent.id, agent)
            else problems.set(agent.name, 'some processes of its session are still running')
          } catch (error) {
            problems.set(agent.name, toAppError(error).message)
          }
        }),
      )
    }
  }
  if (only.length === 0) await endStraySessions(context)
  await failpoint('down.stopped')
  const cleaned = clean ? await removeStopped(context, isSelected) : { removed: [], kept: [], problems: [] }
  for (const { id } of cleaned.removed) stopped.delete(id)
  return {
    stopped: [...stopped.values()],
    removed: [...gone.values(), ...cleaned.removed],
    kept: cleaned.kept,
    problems: [...[...problems].map(([agent, why]) => ({ agent, why })), ...cleaned.problems],
  }
}

const ROUNDS = 3

/** Dependents before what they depend on: pools by `dependsOn`, then the crew. */
const inStopOrder = (
  { isolation: { settings } }: FleetContext,
  agents: readonly FleetAgent[],
): readonly (readonly FleetAgent[])[] => {
  const order = stopOrder(settings.pools) ?? settings.pools
  const known = new Set(order.map(({ name }) => name))
  return [
    agents.filter(({ kind, pool }) => kind === 'worker' && !known.has(pool ?? '')),
    ...order.map(({ name }) => agents.filter(({ kind, pool }) => kind === 'worker' && pool === name)),
    agents.filter(({ kind }) => kind === 'crew'),
  ].filter((group) => group.length > 0)
}

type Cleaned = Pick<DownReport, 'removed' | 'kept' | 'problems'>

/** Skips the crew: only a person removes a crew member's worktrees. */
const removeStopped = async (context: FleetContext, isSelected: (agent: FleetAgent) => boolean): Promise<Cleaned> => {
  const { store, host } = context.isolation
  const removed: FleetAgent[] = []
  const kept: KeptWorktree[] = []
  const problems: FleetProblem[] = []
  for (const agent of await store.fleetAgents.live({ host })) {
    if (agent.kind === 'crew' || mayHaveSession(agent.state) || !isSelected(agent)) continue
    try {
      const giveUpItem = await mayGiveUp(context, agent)
      const { environment, kept: reasons } = await removeAgent(context, agent, { giveUpItem })
      if (reasons.length === 0) removed.push(agent)
      else if (environment !== undefined) kept.push({ agent, environment, reasons })
    } catch (error) {
      problems.push({ agent: agent.name, why: toAppError(error).message })
    }
  }
  return { removed, kept, problems }
}

/** A parked item keeps its worktree in any case. */
const mayGiveUp = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  const { store } = context.isolation
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  if (item === undefined || item.state !== 'hooked') return item === undefined
  return hasNoCommits(context, agent)
}
