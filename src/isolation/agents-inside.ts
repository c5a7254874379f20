import type { IsolatedEnvironment } from '../domain/environment.ts'
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import { type GateAnswer, cannotTell, no } from '../domain/removal/gates.ts'
import { liveness } from '../process/identity.ts'
import { agentMark } from '../process/run-mark.ts'
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
    else if (await isAtWork(context, agent)) answers.push(no('not-in-use', answer))
  }
  return answers
}

const agentsOf = async ({ store, host }: Context, { id, work }: Inside): Promise<readonly FleetAgent[]> => {
  const own = await store.fleetAgents.ofEnvironments([id])
  // A crew member's session may work in all of its worktrees.
  const named = work?.type === 'agent' ? await store.fleetAgents.byName(host, work.id) : undefined
  return named?.kind === 'crew' && own.every((one) => one.id !== named.id) ? [...own, named] : own
}

/** Checks more than the session's first process, because any of the agent's processes may still write here. */
const isAtWork = async ({ home }: Context, { session, state, spawn }: FleetAgent): Promise<boolean> => {
  if (session !== undefined && liveness(session.root) !== 'dead') return true
  if (!mayHaveSession(state)) return false
  const { rows, complete } = await processesOfRuns([agentMark(home, spawn)])
  return !complete || rows.length > 0
}
