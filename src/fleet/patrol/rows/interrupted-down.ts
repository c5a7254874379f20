import { isBeingStopped, mayHaveSession } from '../../../domain/fleet/agent.ts'
import { stopAgent } from '../../stop-agent.ts'
import { about, type AgentRow } from '../row.ts'
import { isGoneCompletely } from '../seen.ts'

const name = 'interrupted-down'

/** `fleet down` was interrupted right after it ended this session. */
export const interruptedDown: AgentRow = {
  name,
  applies: (seen, { control }) =>
    control.state === 'down' &&
    mayHaveSession(seen.agent.state) &&
    seen.agent.state !== 'spawning' &&
    !isBeingStopped(seen.agent) &&
    isGoneCompletely(seen),
  act: async (context, { agent }) =>
    (await stopAgent(context, agent, { graceMs: 0 })).outcome === 'running'
      ? undefined
      : { ...about(agent, name), did: 'stop-recovered' },
}
