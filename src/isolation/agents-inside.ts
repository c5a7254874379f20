import type { IsolatedEnvironment } from '../domain/environment.ts'
import { FLEET_PLATFORM, type FleetAgent } from '../domain/fleet/agent.ts'
import { type GateAnswer, cannotTell, no } from '../domain/removal/gates.ts'
import { liveness } from '../process/identity.ts'
import { agentMark, type RunMark } from '../process/run-mark.ts'
import { processesOfRuns } from '../process/run-processes.ts'
import type { IsolationContext } from './context.ts'

type Inside = Pick<IsolatedEnvironment, 'id'> & Partial<Pick<IsolatedEnvironment, 'work'>>
type Context = Pick<IsolationContext, 'store' | 'host' | 'home'>

/**
 * The fleet's agents that may be working in the environment. Agents of other hosts always count, since they can't be
 * checked.
 */
export const agentsInside = async (context: Context, environment: Inside): Promise<GateAnswer[]> => {
  const answers: GateAnswer[] = []
  for (const agent of await agentsOf(context, environment)) {
    const answer = { kind: 'agent', name: agent.name } as const
    if (agent.host !== context.host) answers.push(cannotTell('not-in-use', answer))
    else if (!(await isProvablyDead(context, agent))) answers.push(no('not-in-use', answer))
  }
  return answers
}

const agentsOf = async ({ store, host }: Context, { id, work }: Inside): Promise<readonly FleetAgent[]> => {
  const own = await store.fleetAgents.ofEnvironments([id])
  // A crew member's session may work in all of its worktrees.
  const named = work?.type === 'agent' ? await store.fleetAgents.byName(host, work.id) : undefined
  return named?.kind === 'crew' && own.every((one) => one.id !== named.id) ? [...own, named] : own
}

/**
 * Nothing of this life of the agent is running, whatever its row says: what it started elsewhere may still write here.
 * Unknown counts as running, and on another host nobody can tell.
 */
export const isProvablyDead = async (context: Context, agent: FleetAgent): Promise<boolean> => {
  if (agent.host !== context.host) return false
  if (agent.session !== undefined && liveness(agent.session.root) !== 'dead') return false
  const { rows, complete } = await processesOfRuns(await marksOf(context, agent))
  return complete && rows.length === 0
}

/** On the processes of its session, and of the runs in it if its program has no terminal of its own. */
export const marksOf = async (
  { home, store, host }: Context,
  { id, spawn }: FleetAgent,
): Promise<readonly RunMark[]> => {
  const runs = (await store.runWatches.ofHost(host)).filter(
    ({ platform, conversationId }) => platform === FLEET_PLATFORM && conversationId === id,
  )
  return [agentMark(home, spawn), ...runs.map(({ data }) => data.mark)]
}
