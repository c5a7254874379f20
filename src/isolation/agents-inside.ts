import type { IsolatedEnvironment } from '../domain/environment.ts'
import { FLEET_PLATFORM, type FleetAgent } from '../domain/fleet/agent.ts'
import { type GateAnswer, cannotTell, no } from '../domain/removal/gates.ts'
import { liveness } from '../process/identity.ts'
import { agentMark, type RunMark } from '../process/run-mark.ts'
import { processesOfRuns, type RunProcesses } from '../process/run-processes.ts'
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
export const marksOf = async (context: Context, agent: FleetAgent): Promise<readonly RunMark[]> =>
  (await marksOfEach(context, [agent])).get(agent.id) ?? []

const marksOfEach = async (
  { home, store, host }: Context,
  agents: readonly FleetAgent[],
): Promise<ReadonlyMap<string, readonly RunMark[]>> => {
  const watches = (await store.runWatches.ofHost(host)).filter(({ platform }) => platform === FLEET_PLATFORM)
  const runsOf = Map.groupBy(watches, ({ conversationId }) => conversationId)
  return new Map(
    agents.map(({ id, spawn }) => {
      const runs = (runsOf.get(id) ?? []).map(({ data }) => data.mark)
      return [id, [agentMark(home, spawn), ...runs]]
    }),
  )
}

/**
 * Which of these agents have marked processes, whatever became of their sessions. `unknown`: processes start faster than
 * they can be checked. One search if there are none, which is the usual answer.
 */
export const marksAlive = async (
  context: Context,
  agents: readonly FleetAgent[],
): Promise<ReadonlyMap<string, 'yes' | 'no' | 'unknown'>> => {
  if (agents.length === 0) return new Map()
  const marks = await marksOfEach(context, agents)
  const answer = ({ rows, complete }: RunProcesses) => (rows.length > 0 ? 'yes' : complete ? 'no' : 'unknown')
  const all = answer(await processesOfRuns([...marks.values()].flat()))
  if (all === 'no' || agents.length === 1) return new Map(agents.map(({ id }) => [id, all]))
  const found = new Map<string, 'yes' | 'no' | 'unknown'>()
  for (const [id, its] of marks) found.set(id, answer(await processesOfRuns(its)))
  return found
}
