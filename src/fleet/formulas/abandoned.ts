import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { FleetContext } from '../context.ts'
import { isHeld } from './run-formula.ts'

/** Those of these runs that no process is executing, of agents of this host. An agent may be gone before its last step. */
export const abandonedAmong = async (
  context: FleetContext,
  running: readonly FormulaRun[],
): Promise<readonly FormulaRun[]> => {
  const { store, host } = context.isolation
  const abandoned: FormulaRun[] = []
  for (const run of running) {
    // The worktree and session are on the agent's host.
    const isHere = (await store.fleetAgents.get(run.agentId))?.host === host
    if (isHere && !isHeld(context, run)) abandoned.push(run)
  }
  return abandoned
}
