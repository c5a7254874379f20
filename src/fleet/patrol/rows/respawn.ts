import { isAppError } from '../../../domain/errors.ts'
import { respawnDelayMs } from '../../../domain/fleet/respawn.ts'
import { providerOf } from '../../../isolation/provider-of.ts'
import { restartAgent } from '../../restart-agent.ts'
import { treeOf } from '../../tree.ts'
import { DEATH } from '../death.ts'
import { WHOLE_LIFE } from '../look.ts'
import { BY, giveUp } from '../park.ts'
import { about, type AgentRow, type RowContext } from '../row.ts'
import { isHooked, type Round, type Seen } from '../seen.ts'

const name = 'respawn'

/** A crashed agent starts again in its own worktree, after a pause that grows with each crash. */
export const respawn: AgentRow = {
  name,
  applies: (seen, round) => round.control.state === 'up' && isRestartable(seen, round) && isDue(seen, round),
  act: async (context, seen, round) => {
    const { agent, item } = seen
    const other = await otherBranch(context, seen)
    if (other !== undefined) return giveUp(context, seen, round, { row: name, reason: other })
    try {
      const { agent: started } = await restartAgent(context, agent, item, { by: BY, afterCrash: true })
      return { ...about(agent, name), did: 'restarted', restarts: started.restarts }
    } catch (error) {
      // Somebody else is starting it, or something of it still runs.
      if (!isAppError(error, 'busy')) await noteFailedStart(context, seen)
      throw error
    }
  },
}

/** With an item that is neither settled nor parked; a crew member is permanent, so also without one. */
export const isRestartable = (seen: Seen, { restarts }: Round): boolean =>
  seen.agent.state === 'crashed' &&
  seen.formula === 'none' &&
  seen.worktree === 'yes' &&
  seen.agent.restarts < restarts &&
  (isHooked(seen) || (seen.agent.kind === 'crew' && seen.agent.itemId === undefined))

const isDue = ({ agent }: Seen, { noteOf, now }: Round): boolean => {
  const delayMs = respawnDelayMs(agent.restarts)
  return delayMs === 0 || now >= (noteOf(agent, DEATH)?.lastSeen ?? 0) + delayMs
}

/** Commits would land on a branch that isn't the item's. */
const otherBranch = async (
  { isolation }: RowContext,
  { agent, codebase, environment }: Seen,
): Promise<
  { readonly kind: 'other-branch'; readonly branch: string; readonly head: string | undefined } | undefined
> => {
  if (agent.itemId === undefined || codebase === undefined || environment === undefined) return undefined
  const tree = await treeOf(isolation, codebase, environment)
  const head = await (await providerOf(isolation, environment)).headBranch(tree)
  return head === environment.branch ? undefined : { kind: 'other-branch', branch: environment.branch, head }
}

/** A program that can't be started counts like one that crashes: it has a cause, too. */
const noteFailedStart = async ({ isolation: { store, host, clock } }: RowContext, { agent }: Seen): Promise<void> => {
  const now = await store.fleetAgents.get(agent.id)
  if (now?.state !== 'crashed') return
  if (now.restarts === agent.restarts) await store.fleetAgents.update(agent.id, { restarts: agent.restarts + 1 })
  await store.patrolNotes.see(host, { subject: agent.id, what: DEATH, life: WHOLE_LIFE, at: clock() })
}
