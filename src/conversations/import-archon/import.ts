/*
 * Import from Archon. In: its database, which is only read. Out: codebases, environments, conversations and sessions
 * here, and a report.
 */
import type { KnownPlatforms } from '../../domain/platform-capabilities.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Environments } from '../../isolation/environments.ts'
import type { ArchonInstallation } from '../../store/archon/archon.ts'
import { archonRoots } from './archon-names.ts'
import { carryOut } from './carry-out.ts'
import { makePlan, type Plan } from './plan.ts'
import type { ImportOptions } from './planning.ts'
import { reportOf } from './report-of.ts'
import type { ImportReport } from './report.ts'

export type ImportParts = {
  readonly context: IsolationContext
  readonly environments: Environments
  readonly platforms: KnownPlatforms
  /** Called with what is going to happen, before anything does. */
  readonly onPlan?: (report: ImportReport) => void
}

/**
 * Imports an Archon installation: codebases, then environments whose worktrees exist, then conversations with their
 * sessions. First everything is planned, without changing anything; a dry run reports the plan, the import carries it
 * out. Idempotent: known items stay as they are. Archon's database is only read.
 */
export const importArchon = async (
  { context, environments, platforms, onPlan }: ImportParts,
  archon: ArchonInstallation,
  options: ImportOptions,
): Promise<ImportReport> => {
  const { dryRun, databaseDirectory, map } = options
  const env = context.ownEnvironment ?? {}
  const roots = archonRoots({ env, databaseDirectory, map })
  const plan: Plan = await makePlan({
    ...options,
    context,
    environments,
    platforms,
    archon,
    roots,
    leftOut: [],
    advice: [],
  })
  onPlan?.(reportOf(plan, true))
  if (dryRun) return reportOf(plan, true)
  return reportOf(await carryOut({ context, environments, signal: options.signal }, plan), false)
}
