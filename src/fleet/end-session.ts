import type { FleetAgent } from '../domain/fleet/agent.ts'
import { marksOf } from '../isolation/agents-inside.ts'
import { dropLeasesOf } from '../isolation/lease.ts'
import { deleteTreeSync } from '../process/files/delete-tree.ts'
import type { FleetContext } from './context.ts'
import { agentDirectory, rootFile } from './sessions/places.ts'
import { endProcesses } from './sessions/prepare.ts'

type Context = Pick<FleetContext, 'isolation' | 'sessions'>

/** How long a session's processes may take to end by themselves. */
export const GRACE_MS = 60_000

/**
 * Ends an agent's session and everything that it started, here or elsewhere. True if all of it is provably dead; then
 * its lease is gone, too, and the environment may be touched. Safe to repeat, and without a session.
 */
export const endSession = async (
  context: Context,
  agent: FleetAgent,
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<boolean> => {
  const { isolation, sessions } = context
  const { home, store, failpoint } = isolation
  if (agent.host !== isolation.host) return false
  const marks = await marksOf(isolation, agent)
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

/** Another process may have started the agent again, or another one of its name: what that has isn't ours to clear. */
export const isLatestLife = async (
  { isolation: { store } }: Pick<FleetContext, 'isolation'>,
  { host, name, spawn }: FleetAgent,
): Promise<boolean> => {
  const latest = await store.fleetAgents.byName(host, name)
  return latest === undefined || latest.spawn === spawn
}

/** The agent is gone: its name is free again. Its log stays. */
export const forgetFiles = ({ isolation: { home } }: Pick<FleetContext, 'isolation'>, name: string): void => {
  try {
    deleteTreeSync(agentDirectory(home, name))
  } catch {
    // What is left keeps the name in use, and `fleet up` tries again.
  }
}
