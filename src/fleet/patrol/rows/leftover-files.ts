import { lstatIfThere } from '../../../process/files/lstat-if-there.ts'
import { listDirectory } from '../../../process/files/list-directory.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import type { FleetContext } from '../../context.ts'
import { deleteAgentFiles } from '../../end-session.ts'
import { agentDirectory, agentsHome } from '../../sessions/paths.ts'
import type { Look } from '../look.ts'
import type { FleetRow } from '../row.ts'

const name = 'leftover-files'

/** Files without a row are this long assumed to belong to an agent that is being started. */
const HALF_MADE_MS = 5 * 60_000

/** Deletes agents' directories that no row refers to, since they keep their names in use. */
export const leftoverFiles: FleetRow = {
  name,
  actOnFleet: async (context, look) => {
    const leftovers = []
    for (const agent of await findLeftoverFiles(context, look)) {
      deleteAgentFiles(context, agent)
      leftovers.push({ row: name, did: 'reclaimed', agent } as const)
    }
    return leftovers
  },
}

/** The names of agents that only have files. Changes nothing. */
export const findLeftoverFiles = async (
  context: FleetContext,
  { listed }: Pick<Look, 'listed'>,
): Promise<readonly string[]> => {
  const { home, store, host } = context.isolation
  const names = (await unlessMissing(listDirectory(Buffer.from(agentsHome(home))))) ?? []
  // Without every list of sessions, any of them may still run.
  if (names.length === 0 || [...listed.values()].includes(undefined)) return []
  const known = new Set((await store.fleetAgents.live({ host })).map((agent) => agent.name))
  const running = new Set([...listed.values()].flatMap((all = []) => all.flatMap((one) => (one.dead ? [] : one.name))))
  const found: string[] = []
  for (const { name: agent } of names) {
    if (!known.has(agent) && !running.has(agent) && (await isLeftover(context, agent))) found.push(agent)
  }
  return found
}

/** Not just being created: unchanged since the last agent of this name went, or for some minutes. */
const isLeftover = async (
  { isolation: { home, store, host, clock } }: FleetContext,
  agent: string,
): Promise<boolean> => {
  const changedAt = lstatIfThere(agentDirectory(home, agent))?.ctimeMs
  if (changedAt === undefined) return false
  const endedAt = (await store.fleetAgents.lastGone(host, agent))?.endedAt
  return clock() - changedAt > HALF_MADE_MS || (endedAt !== undefined && changedAt < endedAt)
}
