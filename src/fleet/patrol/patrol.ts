/*
 * The patrol: finds agents that have died, hang or were left half done, and does what the table of rows says. In: one
 * look at the fleet of this host (`look.ts`) and what earlier rounds have noted. Out: what was found and done. Each row
 * is a file in `rows/`; `registry.ts` has their order.
 */
import type { FleetContext } from '../context.ts'
import type { PatrolOptions } from './row.ts'
import { rows } from './rows/registry.ts'
import { type PatrolReport, runRows } from './run-rows.ts'

/** One round. Safe to repeat, and to run in several processes at once. */
export const patrol = (context: FleetContext, options: PatrolOptions = {}): Promise<PatrolReport> =>
  runRows(context, rows, options)
