import type { FleetContext } from './context.ts'
import { patrol } from './patrol/patrol.ts'
import type { PatrolOptions } from './patrol/row.ts'
import type { PatrolReport } from './patrol/run-rows.ts'
import { type PoolsReport, reconcilePools } from './reconcile-pools.ts'

export type RoundReport = { readonly patrol: PatrolReport; readonly pools: PoolsReport }

/** All that has to be done regularly: the patrol, and then the pools, which may use what it has freed. */
export const runRound = async (context: FleetContext, options: PatrolOptions = {}): Promise<RoundReport> => ({
  patrol: await patrol(context, options),
  pools: await reconcilePools(context),
})
