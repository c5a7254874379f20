import { existsSync } from 'node:fs'
import { nameCandidates } from '../domain/fleet/names.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import { toWork } from '../domain/work.ts'
import type { FleetContext } from './context.ts'
import { agentDirectory } from './sessions/paths.ts'

/** Whether a crew member can have this name. Checks every codebase, since their worktrees may be in any. */
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
 * Names from the pool's theme that no live record, directory (a worktree in any codebase, or files) or session uses.
 * Throws if the sessions can't be listed.
 */
export const freeNames = async function* (
  { isolation: { store, home, host }, sessions }: Pick<FleetContext, 'isolation' | 'sessions'>,
  pool: Pick<PoolSettings, 'names'>,
): AsyncGenerator<string> {
  const used = new Set((await store.fleetAgents.live({ host })).map(({ name }) => name))
  // Includes sessions whose program has ended but that aren't cleared yet.
  for (const kind of sessions.all()) for (const { name } of await kind.list()) used.add(name)
  for (const { id } of await store.codebases.list(host)) {
    for (const { work } of await store.environments.live(id)) if (work.type === 'agent') used.add(work.id)
  }
  for (const name of nameCandidates(pool.names)) {
    if (!used.has(name) && !existsSync(agentDirectory(home, name))) yield name
  }
}
