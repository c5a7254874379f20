import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { FleetContext } from '../context.ts'
import { type FormulaOutcome, isHeld, takeOverFormula } from './run-formula.ts'

/** The runs of this host's agents that no process is executing. */
export const abandonedFormulas = async (context: FleetContext): Promise<readonly FormulaRun[]> => {
  const { store, host } = context.isolation
  const abandoned: FormulaRun[] = []
  for (const run of await store.formulaRuns.running()) {
    // The worktree and session are on the agent's host.
    const isHere = (await store.fleetAgents.get(run.agentId))?.host === host
    if (isHere && !isHeld(context, run)) abandoned.push(run)
  }
  return abandoned
}

/** Finishes the runs whose process has died. Safe to call from several processes at once. */
export const finishFormulas = async (context: FleetContext): Promise<readonly FormulaOutcome[]> => {
  const outcomes: FormulaOutcome[] = []
  for (const run of await abandonedFormulas(context)) {
    try {
      outcomes.push(await takeOverFormula(context, run))
    } catch (error) {
      context.isolation.log.warn('a formula could not be finished', { formula: run.formula, error })
    }
  }
  return outcomes
}
