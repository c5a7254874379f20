import { AppError } from '../domain/errors.ts'
import { type FleetAgent, isBeingStopped } from '../domain/fleet/agent.ts'
import { liveness } from '../process/identity.ts'
import type { FleetContext } from './context.ts'
import { stopAgent } from './stop-agent.ts'

/** Its session has ended by itself, and nobody is stopping or finishing it. It may have left processes running. */
export const hasEnded = (agent: FleetAgent): boolean =>
  (agent.state === 'working' || agent.state === 'stuck' || agent.state === 'draining') &&
  !isBeingStopped(agent) &&
  agent.session !== undefined &&
  liveness(agent.session.root) === 'dead'

/**
 * If the agent's session has ended by itself, ends what it left running, so that it can be restarted. Returns the agent
 * as it is then.
 */
export const stopEnded = async (context: FleetContext, agent: FleetAgent): Promise<FleetAgent> => {
  if (!hasEnded(agent)) return agent
  const stopped = await stopAgent(context, agent)
  if (stopped.outcome !== 'running' || stopped.agent.spawn !== agent.spawn) return stopped.agent
  throw new AppError('busy', `some processes of ${agent.name}'s last session are still running`)
}
