import { mayHaveSession } from '../../../domain/fleet/agent.ts'
import { removeAgent } from '../../remove-agent.ts'
import { about, type AgentRow } from '../row.ts'

const name = 'free-worktree'

/** A worker without an item and a session is of no use; its worktree goes through the gates, and its name is free. */
export const freeWorktree: AgentRow = {
  name,
  applies: ({ agent, formula }, { control }) =>
    control.state === 'up' &&
    agent.kind === 'worker' &&
    agent.itemId === undefined &&
    !mayHaveSession(agent.state) &&
    formula === 'none',
  act: async (context, { agent }) =>
    (await removeAgent(context, agent)).kept.length > 0 ? undefined : { ...about(agent, name), did: 'removed' },
}
