import type { FleetAgent } from '../domain/fleet/agent.ts'
import { AppError } from '../domain/errors.ts'
import { dropLeasesOf } from '../isolation/lease.ts'
import { liveness } from '../process/identity.ts'
import { deleteTreeSync } from '../process/files/delete-tree.ts'
import { agentMark, type RunMark } from '../process/run-mark.ts'
import { processesOfRuns } from '../process/run-processes.ts'
import { FLEET_PLATFORM, type FleetContext } from './context.ts'
import { agentDirectory, rootFile } from './sessions/paths.ts'
import { endProcesses } from './sessions/prepare.ts'

type Context = Pick<FleetContext, 'isolation' | 'sessions'>

/** How long a session's processes may take to end by themselves. */
export const GRACE_MS = 60_000

/**
 * Ends an agent's session and every process that it started. True if all of them are provably dead; then its lease is
 * released too, and the environment may be changed. Safe to repeat, also for an agent without a session.
 */
export const endSession = async (
  context: Context,
  agent: FleetAgent,
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<boolean> => {
  const { isolation, sessions } = context
  const { home, store, failpoint } = isolation
  if (agent.host !== isolation.host) return false
  const marks = await marksOf(context, agent)
  if (!(await endProcesses(isolation, { root: agent.session?.root, marks, graceMs }))) return false
  await failpoint('session.ended')
  if (await isLatestLife(context, agent)) {
    for (const kind of sessions.all()) await kind.clear(agent.name)
    deleteTreeSync(rootFile(agentDirectory(home, agent.name)))
  }
  await failpoint('session.cleared')
  const { environmentId } = agent
  const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  const codebase = environment && (await store.codebases.get(environment.codebaseId))
  if (environment !== undefined && codebase !== undefined && agent.session !== undefined) {
    await dropLeasesOf(isolation, codebase, environment, agent.session.root)
  }
  return true
}

/** For an agent that `fleet down` stopped while it was starting, possibly before it had a session to end. */
export const endInterruptedStart = async (context: Context, agent: FleetAgent): Promise<never> => {
  await endSession(context, agent, { graceMs: 0 })
  throw new AppError('busy', `${agent.name} was stopped while it was starting`)
}

/** If the agent was restarted, or its name is in use again, the session of that name belongs to the new one. */
const isLatestLife = async ({ isolation: { store } }: Context, { host, name, spawn }: FleetAgent): Promise<boolean> => {
  const latest = await store.fleetAgents.byName(host, name)
  return latest === undefined || latest.spawn === spawn
}

/** No process of the agent's current spawn is running. Unknown counts as running, as does an agent of another host. */
export const isProvablyDead = async (context: Pick<FleetContext, 'isolation'>, agent: FleetAgent): Promise<boolean> => {
  if (agent.host !== context.isolation.host) return false
  if (agent.session !== undefined && liveness(agent.session.root) !== 'dead') return false
  const { rows, complete } = await processesOfRuns(await marksOf(context, agent))
  return complete && rows.length === 0
}

/** The marks on the processes of its session, and on its runs if it works turn by turn. */
const marksOf = async (
  { isolation: { home, store, host } }: Pick<FleetContext, 'isolation'>,
  { id, spawn }: FleetAgent,
): Promise<readonly RunMark[]> => {
  const runs = (await store.runWatches.ofHost(host)).filter(
    ({ platform, conversationId }) => platform === FLEET_PLATFORM && conversationId === id,
  )
  return [agentMark(home, spawn), ...runs.map(({ data }) => data.mark)]
}

/** Deletes the files of an agent that is gone, which frees its name. Keeps its log. */
export const deleteAgentFiles = ({ isolation: { home } }: Pick<FleetContext, 'isolation'>, name: string): void => {
  try {
    deleteTreeSync(agentDirectory(home, name))
  } catch {
    // The name stays in use until `fleet up` succeeds in deleting the files.
  }
}
