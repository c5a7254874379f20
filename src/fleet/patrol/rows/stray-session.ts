import { stopAgent } from '../../stop-agent.ts'
import { about, type AgentRow } from '../row.ts'
import { isOldEnough, shouldRun } from '../seen.ts'

const name = 'stray-session'

/** The agent's session is alive, but its worktree was provably removed. Its hook is dealt with in the next round. */
export const straySession: AgentRow = {
  name,
  isConfirmed: true,
  applies: (seen, { now }) =>
    shouldRun(seen) && seen.worktree === 'no' && seen.process === 'yes' && isOldEnough(seen, now),
  act: async (context, { agent }) => {
    if ((await stopAgent(context, agent)).outcome !== 'stopped') return undefined
    const { name: of, itemId } = agent
    await context.isolation.store.transaction((inside) =>
      context.notify(inside, { kind: 'stray-ended', agent: of, itemId }),
    )
    return { ...about(agent, name), did: 'ended' }
  },
}
