import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { marksOf } from '../../isolation/agents-inside.ts'
import { processesOfRuns } from '../../process/run-processes.ts'
import { processTable } from '../../process/table.ts'
import { collectTree } from '../../process/tree.ts'
import type { FleetContext } from '../context.ts'
import type { Round } from './seen.ts'
import { isBusy, type Used, usedBy } from './signs.ts'

/** The note of the CPU time of what has left the agent's session. */
export const OUTSIDE = 'cpu-outside'

/**
 * Whether processes that have left the agent's session use CPU time: a build in the background is found by its mark.
 * `unsettled`: asked for the first time, so there is nothing to compare with.
 */
export const agentOutside = async (
  isolation: FleetContext['isolation'],
  agent: FleetAgent,
  noteOf: Round['noteOf'],
): Promise<'busy' | 'idle' | 'unsettled'> => {
  const { store, host, clock } = isolation
  const { rows } = await processesOfRuns(await marksOf(isolation, agent))
  const tree = agent.session === undefined ? [] : collectTree(await processTable(), [agent.session.root])
  const inside = new Set(tree.map(({ pid }) => pid))
  // Those in its session were counted already.
  const outside = rows.filter(({ identity }) => !inside.has(identity.pid))
  if (outside.length === 0) return 'idle'
  const now = usedBy(outside)
  const before = noteOf(agent, OUTSIDE)?.data as Partial<Used> | undefined
  await store.patrolNotes.see(host, { subject: agent.id, what: OUTSIDE, life: agent.spawn, at: clock(), data: now })
  if (before?.ticks === undefined || before.at === undefined) return 'unsettled'
  return isBusy({ ticks: before.ticks, at: before.at }, now) ? 'busy' : 'idle'
}
