import { runScheduledCleanup } from '../../cleanup/sweep.ts'
import type { Codebase } from '../../domain/environment.ts'
import { AppError, isAppError, toAppError } from '../../domain/errors.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import { type Call, command, isSet, cwdOf, type Workplace } from '../../commands/command.ts'
import { type CleanupResult, cleanupExit, cleanupJson, cleanupText, tellNotices } from '../../commands/views/report.ts'

const run = async (call: Call): Promise<CleanupResult> => {
  const dryRun = isSet(call.values, 'dry-run')
  const workplace = await call.open()
  const { context, environments } = workplace
  const codebases = await codebasesOf(call, workplace)
  const parts: CleanupResult['parts'][number][] = []
  const failed: CleanupResult['failed'][number][] = []
  for (const codebase of codebases) {
    if (call.signal.aborted) throw new AppError('cancelled', 'the cleanup was cancelled')
    try {
      const report = await runScheduledCleanup(context, await environments(), codebase, { dryRun })
      tellNotices(call, report)
      parts.push({ codebase: codebase.name, report })
    } catch (error) {
      // One unreadable repository must not block the others' cleanup.
      if (codebases.length === 1) throw error
      failed.push({ codebase: codebase.name, error: toAppError(error).message })
    }
  }
  const names = new Map(codebases.map(({ id, name }) => [String(id), name]))
  return {
    parts,
    dryRun,
    nameOf: (id) => names.get(id) ?? '',
    failed,
    restoreDays: context.settings.restoreDays,
  }
}

/** Outside a repository: all codebases, like the scheduler. */
const codebasesOf = async (call: Call, { context }: Workplace): Promise<Codebase[]> => {
  try {
    return [await resolveCodebase(context, { name: call.codebase, cwd: cwdOf(call), signal: call.signal })]
  } catch (error) {
    if (call.codebase !== undefined || !isAppError(error, 'not-a-repository')) throw error
    return context.store.codebases.list(context.host)
  }
}

export const cleanup = command<CleanupResult>({
  run,
  toText: cleanupText,
  toJson: cleanupJson,
  exitCode: cleanupExit,
})
