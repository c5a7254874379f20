import type { LimitReport } from '../../isolation/resolve/resolution.ts'
import { counted } from '../../domain/text/words.ts'
import type { FailureJson } from './failure.ts'
import { describeStaleBase } from './merged.ts'
import { type View } from './view.ts'

/** Same on every platform. Commands are code: in Markdown `<name>` would be an HTML tag, and vanish. */
export const limitMessage = (report: LimitReport, staleDays: number): string =>
  [
    `You have ${counted(report.count, 'active worktree')} for **${report.codebase}** (limit reached).`,
    ` ${breakdown(report, staleDays).join('   ')}`,
    ...unknownMergedLine(report, { chat: true }).map((line) => ` ${line}`),
    ` ${commandsFor(report)
      .map(({ command, removes }) => `\`/${command}\`${removes === undefined ? '' : ` (${removes})`}`)
      .join(' · ')}`,
  ].join('\n')

const unknownMergedLine = ({ unknownMerged }: LimitReport, view: Pick<View, 'chat'>): string[] =>
  unknownMerged === undefined ? [] : [`${describeStaleBase(unknownMerged, view)}, so which are merged is unknown`]

/** The limit message with the surface's commands. */
export const limitText = (report: LimitReport, staleDays: number, { commandText, paint, chat }: View): string =>
  chat === true
    ? limitMessage(report, staleDays)
    : [
        `You have ${counted(report.count, 'active worktree')} for ${paint('bold', report.codebase)} (limit reached: ${report.limit}).`,
        ` ${breakdown(report, staleDays).join('   ')}`,
        ...unknownMergedLine(report, {}).map((line) => ` ${line}`),
        ...commandsFor(report).map(({ command, removes }) =>
          removes === undefined ? `   ${commandText(command)}` : `   ${commandText(command)}   (removes ${removes})`,
        ),
      ].join('\n')

export const limitJson = (report: LimitReport, staleDays: number, { commandText }: View): FailureJson => ({
  error: {
    code: 'limit',
    message: `${report.codebase} has ${report.count} of ${report.limit} worktrees: ${[...breakdown(report, staleDays), ...unknownMergedLine(report, {})].join(', ')}`,
    reasons: [],
    remedies: commandsFor(report).map(({ command }) => commandText(command)),
  },
})

type Suggestion = { readonly command: string; readonly removes?: number }

/** Suggests a cleanup only if it would free a slot. */
const commandsFor = ({ merged, stale }: LimitReport): Suggestion[] => [
  ...(merged > 0 ? [{ command: 'worktree cleanup merged', removes: merged }] : []),
  ...(stale > 0 ? [{ command: 'worktree cleanup stale', removes: stale }] : []),
  { command: 'worktree list' },
  { command: 'worktree remove <name>' },
]

const breakdown = ({ merged, stale, held, active }: LimitReport, staleDays: number): string[] => [
  `${merged} merged${merged > 0 ? ' (can be removed)' : ''}`,
  `${stale} stale (no activity in ${staleDays}+ days)`,
  ...heldText(held),
  `${active} active`,
]

/** None is the usual case, and not worth a word. */
export const heldText = (held: number): string[] =>
  held > 0 ? [`${held} held (merged or stale, but in use or with work to keep)`] : []
