import { endStraySessions } from '../../stray-sessions.ts'
import type { Look } from '../look.ts'
import type { FleetRow, RowContext } from '../row.ts'

const name = 'stray-sessions'

/**
 * Sessions of agents that are recorded as gone. One of an agent that was never recorded here may have outlived the
 * database: `fleet up` rebuilds its agent from its worktree, so it isn't ended before that.
 */
export const straySessions: FleetRow = {
  name,
  actOnFleet: async (context, look) => {
    const { stray, except } = await findStraySessions(context, look)
    if (stray.length === 0) return []
    const ended = await endStraySessions(context, { listed: look.listed, except })
    return ended.map((agent) => ({ row: name, did: 'ended', agent }))
  },
}

/** Changes nothing. `except`: the sessions that may belong to an agent all the same. */
export const findStraySessions = async (
  { isolation: { store, host } }: Pick<RowContext, 'isolation'>,
  { listed, agents }: Pick<Look, 'listed' | 'agents'>,
): Promise<{ readonly stray: readonly string[]; readonly except: readonly string[] }> => {
  const live = new Set([...agents.values()].map(({ agent }) => agent.name))
  const found = [...listed.values()].flatMap((all = []) => all).filter((one) => !live.has(one.name))
  const [stray, except]: [string[], string[]] = [[], []]
  for (const { name: of, startedAt = Infinity } of found) {
    const endedAt = (await store.fleetAgents.lastGone(host, of))?.endedAt
    const isStray = endedAt !== undefined && startedAt <= endedAt
    ;(isStray ? stray : except).push(of)
  }
  return { stray, except }
}
