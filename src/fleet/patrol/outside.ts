import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { marksOf } from '../../isolation/agents-inside.ts'
import { processesOfRuns } from '../../process/run-processes.ts'
import type { FleetContext } from '../context.ts'
import type { Round } from './seen.ts'
import { isBusy, usedBy } from './signs.ts'

const NOTE = 'cpu-of-all'

/**
 * Whether an agent's processes use CPU time, wherever they are: a build that has left its session is found by its mark.
 * `unsettled`: asked for the first time, so there is nothing to compare with.
 */
export const agentOutside = async (
  isolation: FleetContext['isolation'],
  agent: FleetAgent,
  noteOf: Round['noteOf'],
): Promise<'busy' | 'idle' | 'unsettled'> => {
  const { store, host, clock } = isolation
  const { rows } = await processesOfRuns(await marksOf(isolation, agent))
  const session = new Set([agent.session?.root.pid])
  // All in its session were counted already.
  if (rows.every((row) => session.has(row.session))) return 'idle'
  const now = usedBy(rows)
  const before = noteOf(agent, NOTE)?.data as typeof now | undefined
  await store.patrolNotes.see(host, { subject: agent.id, what: NOTE, life: agent.spawn, at: clock(), data: now })
  if (before === undefined) return 'unsettled'
  return isBusy(before, now) ? 'busy' : 'idle'
}
