import type { LimitReport } from '../../isolation/resolution.ts'
import { counted } from '../../domain/text/words.ts'
import type { FailureJson } from './failure.ts'
import { describeStaleBase } from './merged.ts'
import { type View } from './view.ts'

/** Same on every platform. */
export const limitMessage = (report: LimitReport, staleDays: number): string =>
  [
    `You have ${report.count} active worktrees for **${report.codebase}** (limit reached).`,
    ` ${report.merged} merged (can be removed)   ${report.stale} stale (no activity in ${staleDays}+ days)   ${report.active} active`,
    ...unknownMergedLine(report).map((line) => ` ${line}`),
    ' /worktree cleanup merged · /worktree cleanup stale · /worktree list · /worktree remove <name>',
  ].join('\n')

const unknownMergedLine = ({ unknownMerged }: LimitReport): string[] =>
  unknownMerged === undefined ? [] : [`${describeStaleBase(unknownMerged)}, so which are merged is unknown`]

/** The limit message with the surface's commands. */
export const limitText = (report: LimitReport, staleDays: number, { commandText, paint, chat }: View): string =>
  chat === true
    ? limitMessage(report, staleDays)
    : [
        `You have ${counted(report.count, 'active worktree')} for ${paint('bold', report.codebase)} (limit reached: ${report.limit}).`,
        ` ${breakdown(report, staleDays).join('   ')}`,
        ...unknownMergedLine(report).map((line) => ` ${line}`),
        ...commandsFor(report).map((command) => `   ${commandText(command)}`),
      ].join('\n')

export const limitJson = (report: LimitReport, staleDays: number, { commandText }: View): FailureJson => ({
  error: {
    code: 'limit',
    message: `${report.codebase} has ${report.count} of ${report.limit} worktrees: ${[...breakdown(report, staleDays), ...unknownMergedLine(report)].join(', ')}`,
    reasons: [],
    remedies: commandsFor(report).map(commandText),
  },
})

/** Suggests a cleanup only if it would free a slot. */
const commandsFor = ({ merged, stale }: LimitReport): string[] => [
  ...(merged > 0 ? ['worktree cleanup merged'] : []),
  ...(stale > 0 ? ['worktree cleanup stale'] : []),
  'worktree list',
  'worktree remove <name>',
]

const breakdown = ({ merged, stale, active }: LimitReport, staleDays: number): string[] => [
  `${merged} merged${merged > 0 ? ' (can be removed)' : ''}`,
  `${stale} stale (no activity in ${staleDays}+ days)`,
  `${active} active`,
]
