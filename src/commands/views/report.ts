import { type CleanupReport, joinReports } from '../../cleanup/report.ts'
import { describeLeftOut } from './left-out.ts'
import { counted } from '../../domain/text/words.ts'
import type { Call } from '../command.ts'
import { exitCodes, faultMessage } from './failure.ts'
import { type NameOf, reportJson } from './json.ts'
import { describeRemovalReason } from './merged.ts'
import { describeReasons } from './reasons.ts'
import { lastCommand, aligned, type Cell, tilde, type View } from './view.ts'

export type CleanupResult = {
  readonly parts: readonly { readonly codebase: string; readonly report: CleanupReport }[]
  readonly nameOf: NameOf
  /** Codebases whose cleanup failed, and why. */
  readonly failed: readonly { readonly codebase: string; readonly error: string }[]
  readonly dryRun: boolean
  readonly restoreDays: number
}

export const tellNotices = (call: Call, { notices }: CleanupReport): void => {
  for (const notice of notices) call.notice(notice)
}

export const cleanupExit = ({ parts, failed }: CleanupResult): number =>
  parts.some(({ report }) => report.errors.length > 0) || failed.length > 0 ? exitCodes.failed : exitCodes.done

/** Merges all codebases. */
export const cleanupJson = (
  { parts, nameOf, dryRun }: CleanupResult,
  view: Pick<View, 'commandText' | 'chat'>,
): ReturnType<typeof reportJson> => {
  const reports = parts.map(({ report }) => report)
  return reportJson(joinReports(reports, dryRun), nameOf, view)
}

/** What was removed or kept, and why; grouped by codebase if there are several. */
export const cleanupText = ({ parts, failed, restoreDays, dryRun }: CleanupResult, view: View): string => {
  const codebases = [...parts.map(({ codebase }) => codebase), ...failed.map(({ codebase }) => codebase)]
  const several = codebases.length > 1
  const rows = [
    ...parts.flatMap(({ codebase, report }) =>
      rowsOf(report, view).map(([state, ...rest]) => [state, { text: several ? codebase : '' }, ...rest]),
    ),
    ...failed.map(({ codebase, error }) => [cell('failed', 'red'), { text: codebase }, { text: '' }, { text: error }]),
  ].map((row) => row.filter((one) => one !== undefined))
  const removed = parts.reduce((sum, { report }) => sum + report.removed.length, 0)
  const done = `${counted(removed, 'worktree')} ${dryRun ? 'would be removed' : 'removed'}`
  const kept = removed > 0 && !dryRun ? `; each can be restored for ${restoreDays} days` : ''
  const unknown = parts.some(({ report }) => report.orphans.length > 0)
  return [
    ...(rows.length === 0 ? [] : [aligned(rows, view)]),
    ...(unknown
      ? [
          `To track one: ${lastCommand(view.commandText(`worktree adopt ${view.chat === true ? '<branch>' : '<path>'}`), view)}`,
        ]
      : []),
    `${codebases.join(', ') || 'No repositories registered'}: ${done}${kept}.`,
  ].join('\n')
}

const rowsOf = ({ removed, skipped, missing, errors, orphans, dryRun }: CleanupReport, view: View): Cell[][] => [
  ...removed.flatMap(({ environment: { branch }, why, branchDeleted, leftOut }) => [
    [
      cell(dryRun ? 'would remove' : 'removed', 'green'),
      cell(branch, 'bold'),
      { text: `${describeRemovalReason(why)}${branchDeleted ? ', branch deleted' : ''}` },
    ],
    ...describeLeftOut(leftOut).map((line) => [{ text: '' }, { text: '' }, cell(`not kept: ${line}`, 'dim')]),
  ]),
  ...skipped.map(({ environment: { branch }, reasons }) => [
    cell('kept', 'yellow'),
    cell(branch, 'bold'),
    { text: describeReasons(reasons) },
  ]),
  ...missing.map(({ branch, path }) => [
    cell('missing', 'yellow'),
    cell(branch, 'bold'),
    { text: `${tilde(path, view)} doesn't exist` },
  ]),
  ...errors.map(({ environment: { branch }, error }) => [
    cell('failed', 'red'),
    cell(branch, 'bold'),
    { text: faultMessage(error, view) },
  ]),
  ...orphans.map(({ path, branch }) => [
    cell('untracked', 'dim'),
    { text: branch ?? '(no branch)' },
    { text: tilde(path, view) },
  ]),
]

const cell = (text: string, style: NonNullable<Cell['style']>): Cell => ({ text, style })
