import { mayHaveSession } from '../../../domain/fleet/agent.ts'
import { removeAgent } from '../../remove-agent.ts'
import { about, type AgentRow } from '../row.ts'

const name = 'free-worktree'

/** The note that the gates have kept it. Asking them starts several processes. */
const KEPT = 'kept-worktree'
const ASK_AGAIN_MS = 60 * 60_000

/** A worker without an item and a session is of no use; its worktree goes through the gates, and its name is free. */
export const freeWorktree: AgentRow = {
  name,
  applies: ({ agent, formula }, { control, now, noteOf }) =>
    control.state === 'up' &&
    agent.kind === 'worker' &&
    agent.itemId === undefined &&
    !mayHaveSession(agent.state) &&
    formula === 'none' &&
    now - (noteOf(agent, KEPT)?.lastSeen ?? -Infinity) >= ASK_AGAIN_MS,
  act: async (context, { agent }) => {
    const { store, host, clock } = context.isolation
    if ((await removeAgent(context, agent)).kept.length === 0) return { ...about(agent, name), did: 'removed' }
    await store.patrolNotes.see(host, { subject: agent.id, what: KEPT, life: agent.spawn, at: clock() })
    return undefined
  },
}
