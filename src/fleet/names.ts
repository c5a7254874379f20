import { existsSync } from 'node:fs'
import { nameCandidates } from '../domain/fleet/names.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import { toWork } from '../domain/work.ts'
import type { FleetContext } from './context.ts'
import { agentDirectory } from './sessions/places.ts'

/** For a member of the crew, whose worktrees may be in any codebase. */
export const isFreeName = async (
  { isolation: { store, home, host }, sessions }: Pick<FleetContext, 'isolation' | 'sessions'>,
  name: string,
): Promise<boolean> => {
  if ((await store.fleetAgents.byName(host, name)) !== undefined || existsSync(agentDirectory(home, name))) return false
  for (const kind of sessions.all()) if ((await kind.list()).some((seen) => seen.name === name)) return false
  for (const { id } of await store.codebases.list(host)) {
    if ((await store.environments.liveByWork(id, toWork('agent', name))) !== undefined) return false
  }
  return true
}

/**
 * Names for which there is no live record, no directory (a worktree in any codebase, the agent's files) and no session.
 * Sessions that can't be listed count as there.
 */
export const freeNames = async function* (
  { isolation: { store, home, host }, sessions }: Pick<FleetContext, 'isolation' | 'sessions'>,
  pool: Pick<PoolSettings, 'names'>,
): AsyncGenerator<string> {
  const used = new Set((await store.fleetAgents.live({ host })).map(({ name }) => name))
  // A session whose program has ended is one, too, until it is cleared.
  for (const kind of sessions.all()) for (const { name } of await kind.list()) used.add(name)
  for (const { id } of await store.codebases.list(host)) {
    for (const { work } of await store.environments.live(id)) if (work.type === 'agent') used.add(work.id)
  }
  for (const name of nameCandidates(pool.names)) {
    if (!used.has(name) && !existsSync(agentDirectory(home, name))) yield name
  }
}
