import { runScheduledCleanup } from '../cleanup/sweep.ts'
import { type Call, command, isSet } from './command.ts'
import { resolveTarget, resolveTargetForWrite } from './target.ts'
import { usage } from './grammar/usage.ts'
import { type CleanupResult, cleanupExit, cleanupJson, cleanupText, tellNotices } from './views/report.ts'

const run = async (call: Call): Promise<CleanupResult> => {
  const [only] = call.words
  if (only !== 'merged' && only !== 'stale') {
    throw usage(`unknown cleanup type ${JSON.stringify(only)}`, 'use `merged` or `stale`')
  }
  const dryRun = isSet(call.values, 'dry-run')
  const { context, environments, codebase, nameOf } = await (dryRun ? resolveTarget(call) : resolveTargetForWrite(call))
  const askedBy = call.chat?.conversation.id
  const report = await runScheduledCleanup(context, await environments(), codebase, {
    only,
    dryRun,
    ...(askedBy !== undefined && { askedBy }),
  })
  tellNotices(call, report)
  const parts = [{ codebase: codebase.name, report }]
  return { parts, nameOf, failed: [], dryRun, restoreDays: context.settings.restoreDays }
}

export const worktreeCleanup = command<CleanupResult>({
  run,
  toText: cleanupText,
  toJson: cleanupJson,
  exitCode: cleanupExit,
})
