import { recoverStart } from '../../recover-start.ts'
import { about, type AgentRow } from '../row.ts'

/** A start whose process has died is completed or undone. */
export const interruptedStart: AgentRow = {
  name: 'interrupted-start',
  applies: ({ agent, holder }) => agent.state === 'spawning' && holder === 'no',
  act: async (context, { agent }) =>
    (await recoverStart(context, agent)) ? { ...about(agent, 'interrupted-start'), did: 'start-recovered' } : undefined,
}
