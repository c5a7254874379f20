import type { FleetContext } from './context.ts'
import { runRows } from './patrol/run-rows.ts'
import { recoveryRows } from './patrol/rows/registry.ts'

export type RecoveredFleet = {
  /** Agents whose interrupted start or stop was completed or undone. */
  readonly settled: readonly string[]
  /** Agents that couldn't be recovered now, and why. */
  readonly left: readonly { readonly agent: string; readonly why: string }[]
}

/**
 * Completes or undoes starts, assignments, stops and formulas whose process has died, as the patrol does. Skips those of
 * a living process, and restarts nothing. Idempotent.
 */
export const recoverFleet = async (context: FleetContext): Promise<RecoveredFleet> => {
  const { findings, problems } = await runRows(context, recoveryRows)
  return {
    settled: findings.flatMap(({ agent, did }) =>
      agent === undefined || did === 'finished' || did === 'reclaimed' ? [] : [agent],
    ),
    left: problems.map(({ agent, why }) => ({ agent, why })),
  }
}
