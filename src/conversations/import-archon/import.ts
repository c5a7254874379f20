/*
 * Import from Archon. In: its database, which is only read. Out: codebases, environments, conversations and sessions
 * here, and a report.
 */
import type { IsolationContext } from '../../isolation/context.ts'
import type { Environments } from '../../isolation/environments.ts'
import type { ArchonInstallation } from '../../store/archon/archon.ts'
import { takeOverCodebases } from './codebases.ts'
import { takeOverConversations } from './conversations.ts'
import { takeOverEnvironments } from './environments.ts'
import type { Import, ImportOptions } from './each-row.ts'
import { createRecorder, type ImportReport } from './report.ts'

/**
 * Imports an Archon installation: codebases, then environments whose worktrees exist, then conversations with their
 * sessions. Each step reads first and writes last, so a dry run only skips the writes. Idempotent: known items stay as
 * they are. Archon's database, the worktrees and the repositories aren't changed.
 */
export const importArchon = async (
  context: IsolationContext,
  environments: Environments,
  archon: ArchonInstallation,
  options: ImportOptions,
): Promise<ImportReport> => {
  const run: Import = { ...options, context, environments, archon, record: createRecorder() }
  context.progress('importing repositories')
  const codebases = await takeOverCodebases(run)
  context.progress('importing worktrees')
  const imported = await takeOverEnvironments(run, codebases)
  context.progress('importing conversations')
  await takeOverConversations(run, codebases, imported)
  return run.record.report(options.dryRun)
}
