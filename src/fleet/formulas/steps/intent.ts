import { AppError } from '../../../domain/errors.ts'
import { canAgentBecome } from '../../../domain/fleet/agent.ts'
import type { Step } from '../step.ts'

/** Marks the agent as finishing, so that a later death doesn't count as a crash at work. */
export const intent: Step = async (_context, { agent }) => ({
  state: 'done',
  record: async (store) => {
    if (agent.state === 'finishing') return
    if (
      !canAgentBecome(agent.state, 'finishing') ||
      !(await store.fleetAgents.move(agent.id, agent.state, 'finishing'))
    ) {
      throw new AppError('busy', `${agent.name} is ${agent.state}, so it can't finish its item now`)
    }
  },
})
