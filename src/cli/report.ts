import type { CleanupReport } from '../cleanup/report.ts'
import type { Call } from './command.ts'
import { exitCodes } from './failure.ts'
import type { NameOf } from './json.ts'
import { count, printable, tilde, type View } from './view.ts'

export type CleanupResult = {
  readonly report: CleanupReport
  readonly nameOf: NameOf
  readonly codebases: readonly string[]
  /** Codebases that could not be cleaned at all, and why. */
  readonly failed: readonly string[]
  readonly restoreDays: number
}

export const tellNotices = (call: Call, { notices }: CleanupReport): void => {
  for (const notice of notices) call.notice(notice)
}

export const cleanupExit = ({ report, failed }: CleanupResult): number =>
  report.errors.length + failed.length > 0 ? exitCodes.failed : exitCodes.done

/** What went and why, and why the rest did not. */
export const cleanupText = ({ report, codebases, failed, restoreDays }: CleanupResult, view: View): string => {
  const { paint, say } = view
  const { removed, skipped, missing, orphans, errors, dryRun } = report
  const lines = [
    ...removed.map(
      ({ environment: { branch }, why, branchDeleted }) =>
        `${paint('green', dryRun ? 'would remove' : 'removed')}  ${paint('bold', branch)}  ${printable(why)}${branchDeleted ? ', branch deleted' : ''}`,
    ),
    ...skipped.map(
      ({ environment: { branch }, reasons }) =>
        `${paint('yellow', 'kept')}  ${paint('bold', branch)}  ${printable(reasons.map(({ detail }) => detail).join(', '))}`,
    ),
    ...missing.map(
      ({ branch, path }) =>
        `${paint('yellow', 'missing')}  ${paint('bold', branch)}  ${tilde(path, view)} is not there`,
    ),
    ...errors.map(
      ({ environment: { branch }, error }) =>
        `${paint('red', 'failed')}  ${paint('bold', branch)}  ${printable(error)}`,
    ),
    ...failed.map((what) => `${paint('red', 'failed')}  ${printable(what)}`),
    ...orphans.map(
      ({ path, branch }) =>
        `${paint('dim', 'not ours')}  ${branch ?? '(no branch)'}  ${tilde(path, view)}  (${say('worktree adopt <path>')})`,
    ),
  ]
  const done = dryRun
    ? `${count(removed.length, 'environment')} would be removed`
    : `${count(removed.length, 'environment')} removed`
  const kept = removed.length > 0 && !dryRun ? `; each can be restored for ${restoreDays} days` : ''
  return [...lines, `${codebases.join(', ') || 'No codebase is registered'}: ${done}${kept}.`].join('\n')
}
