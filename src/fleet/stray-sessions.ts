import type { FleetContext } from './context.ts'
import { killTree } from '../process/kill.ts'
import { GRACE_MS } from './end-session.ts'

/** A session is young until whoever starts it has recorded it. */
const YOUNG_MS = 60_000

/**
 * Ends the sessions that no agent of this host has: their worktrees are gone or were never theirs. One whose root can't
 * be identified, or that is young, is left; so are `except`. Returns the names.
 */
export const endStraySessions = async (
  { isolation, sessions }: FleetContext,
  { except = [] }: { readonly except?: readonly string[] } = {},
): Promise<readonly string[]> => {
  const { store, host, clock } = isolation
  const ended: string[] = []
  for (const kind of sessions.all()) {
    for (const { name, root, dead, startedAt } of await kind.list()) {
      if (except.includes(name) || (await store.fleetAgents.byName(host, name)) !== undefined) continue
      if (!dead) {
        if (root === undefined || startedAt === undefined || clock() - startedAt < YOUNG_MS) continue
        // Asked again right before: an agent of this name may have been recorded since.
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
