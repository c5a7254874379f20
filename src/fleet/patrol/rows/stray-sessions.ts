import { endStraySessions } from '../../stray-sessions.ts'
import type { FleetRow } from '../row.ts'

const name = 'stray-sessions'

/**
 * Sessions of agents that are recorded as gone. One of an agent that was never recorded here may have outlived the
 * database: `fleet up` rebuilds its agent from its worktree, so it isn't ended before that.
 */
export const straySessions: FleetRow = {
  name,
  actOnFleet: async (context, { listed, agents }) => {
    const { store, host } = context.isolation
    const live = new Set([...agents.values()].map(({ agent }) => agent.name))
    const found = [...listed.values()].flatMap((all = []) => all).filter((one) => !live.has(one.name))
    const except: string[] = []
    for (const { name: of, startedAt = Infinity } of found) {
      const endedAt = (await store.fleetAgents.lastGone(host, of))?.endedAt
      if (endedAt === undefined || startedAt > endedAt) except.push(of)
    }
    if (found.length === except.length) return []
    const ended = await endStraySessions(context, { listed, except })
    return ended.map((agent) => ({ row: name, did: 'ended', agent }))
  },
}
