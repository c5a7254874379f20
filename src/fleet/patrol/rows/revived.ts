import { about, type AgentRow } from '../row.ts'

const name = 'revived'

/** A stuck agent shows a sign of life again. */
export const revived: AgentRow = {
  name,
  applies: ({ agent, lastSignAt }, { now, stuckMs }) => agent.state === 'stuck' && now - lastSignAt < stuckMs,
  act: async ({ isolation: { store } }, { agent }) =>
    (await store.fleetAgents.move(agent.id, 'stuck', 'working'))
      ? { ...about(agent, name), did: 'revived' }
      : undefined,
}
