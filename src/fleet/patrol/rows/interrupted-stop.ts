import { isBeingStopped } from '../../../domain/fleet/agent.ts'
import { finishRetiring, isRetiring } from '../../sling/idle-workers.ts'
import { stopAgent } from '../../stop-agent.ts'
import { about, type AgentRow } from '../row.ts'

const name = 'interrupted-stop'

/**
 * A stop whose process has died is completed if it had ended the session's first process, so that the rest isn't taken
 * for a crash. If that still runs, the agent goes on, and whoever stopped it has to ask again.
 */
export const interruptedStop: AgentRow = {
  name,
  applies: ({ agent, holder, process }) => isBeingStopped(agent) && holder === 'no' && process !== 'unknown',
  act: async (context, { agent, process }, { control }) => {
    const { store } = context.isolation
    const recovered = { ...about(agent, name), did: 'stop-recovered' } as const
    if (process === 'yes')
      return (await store.fleetAgents.move(agent.id, 'draining', 'working')) ? recovered : undefined
    if (isRetiring(agent) && control.state !== 'down') await finishRetiring(context, agent)
    else if ((await stopAgent(context, agent, { graceMs: 0 })).outcome === 'running') return undefined
    return recovered
  },
}
