import type { FleetAgent } from '../domain/fleet/agent.ts'
import { AppError } from '../domain/errors.ts'
import { marksOf } from '../isolation/agents-inside.ts'
import { dropLeasesOf } from '../isolation/lease.ts'
import { deleteTreeSync } from '../process/files/delete-tree.ts'
import type { FleetContext } from './context.ts'
import { agentDirectory, rootFile } from './sessions/paths.ts'
import { endProcesses } from './sessions/prepare.ts'

type Context = Pick<FleetContext, 'isolation' | 'sessions'>

/** How long a session's processes may take to end by themselves. */
export const GRACE_MS = 60_000

/**
 * Ends an agent's session and every process that it started. True if all of them are provably dead; then its lease is
 * released too, and the environment may be changed. Safe to repeat, also for an agent without a session. `isOrphan`: its
 * session was taken away, but its program survived.
 */
export const endSession = async (
  context: Context,
  agent: FleetAgent,
  { graceMs = GRACE_MS, isOrphan = false }: { readonly graceMs?: number; readonly isOrphan?: boolean } = {},
): Promise<boolean> => {
  const { isolation, sessions } = context
  const { home, store, failpoint } = isolation
  if (agent.host !== isolation.host) return false
  const marks = await marksOf(isolation, agent)
  if (!(await endProcesses(isolation, { root: agent.session?.root, marks, graceMs, isOrphan }))) return false
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

/** If the agent was restarted, or its name is in use again, the session and files of that name belong to the new one. */
export const isLatestLife = async (
  { isolation: { store } }: Pick<FleetContext, 'isolation'>,
  { host, name, spawn }: FleetAgent,
): Promise<boolean> => {
  const latest = await store.fleetAgents.byName(host, name)
  return latest === undefined || latest.spawn === spawn
}

/** Deletes the files of an agent that is gone, which frees its name. Keeps its log. */
export const deleteAgentFiles = ({ isolation: { home } }: Pick<FleetContext, 'isolation'>, name: string): void => {
  try {
    deleteTreeSync(agentDirectory(home, name))
  } catch {
    // The name stays in use until `fleet up` succeeds in deleting the files.
  }
}
