import type { SessionKind } from '../domain/fleet/agent.ts'
import type { FleetContext } from './context.ts'
import { killTree } from '../process/kill.ts'
import { GRACE_MS } from './end-session.ts'
import type { ListedSession } from './sessions/session.ts'

/** A session that was just started may not be recorded yet. */
const YOUNG_MS = 60_000

/**
 * Ends the sessions that belong to no agent of this host, and returns their names. Skips `except`, and those that are
 * young or whose first process can't be identified. `listed`: if they were just listed, by kind.
 */
export const endStraySessions = async (
  { isolation, sessions }: FleetContext,
  {
    except = [],
    listed,
  }: {
    readonly except?: readonly string[]
    readonly listed?: ReadonlyMap<SessionKind, readonly ListedSession[] | undefined>
  } = {},
): Promise<readonly string[]> => {
  const { store, host, clock } = isolation
  const ended: string[] = []
  for (const kind of sessions.all()) {
    const found = listed === undefined ? await kind.list() : (listed.get(kind.kind) ?? [])
    for (const { name, root, dead, startedAt } of found) {
      if (except.includes(name) || (await store.fleetAgents.byName(host, name)) !== undefined) continue
      if (!dead) {
        if (root === undefined || startedAt === undefined || clock() - startedAt < YOUNG_MS) continue
        // Checked again right before: an agent of this name may have been recorded meanwhile.
        if ((await store.fleetAgents.byName(host, name)) !== undefined) continue
        const { outcome } = await killTree(root, { graceMs: GRACE_MS, clock })
        if (outcome !== 'dead') continue
      }
      await kind.clear(name)
      ended.push(name)
    }
  }
  return ended
}
