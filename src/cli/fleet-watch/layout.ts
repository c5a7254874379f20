import { cutLines } from '../../domain/text/width.ts'
import { wrapped } from '../../commands/views/view.ts'
import { oneLine } from './line.ts'
import type { Size, State, View } from './state.ts'

/** How the screen's lines are shared out, from top to bottom. */
export type Shares = {
  readonly summary: number
  readonly headings: number
  readonly body: number
  /** About the selected row, with a rule above. */
  readonly details: number
  readonly message: number
  readonly hints: number
}

export const sharesOf = ({ rows }: Size): Shares => {
  const small = rows < 8
  const rest = {
    summary: rows < 4 ? 0 : 1,
    headings: small ? 0 : 1,
    details: rows < 16 ? 0 : rows < 30 ? 5 : 7,
    message: rows < 2 ? 0 : 1,
    hints: small ? 0 : 1,
  }
  const { summary, headings, details, message, hints } = rest
  return { ...rest, body: Math.max(1, rows - summary - headings - details - message - hints) }
}

/** How many rows the list shows. */
export const bodyRows = (size: Size): number => sharesOf(size).body

/** The lines of a pane, wrapped, and how many are shown. */
export const peekRows = (
  { size }: Pick<State, 'size'>,
  { lines }: Extract<View, { kind: 'peek' }>,
): { readonly lines: readonly string[]; readonly height: number } => {
  const { summary, message, hints } = sharesOf(size)
  return {
    lines: (lines ?? []).flatMap((line) => cutLines(oneLine(line), size.columns)),
    height: Math.max(1, size.rows - summary - message - hints),
  }
}

/** At words where that is possible, otherwise anywhere. */
export const wrappedLines = (text: string, columns: number, indent = 0): string[] =>
  wrapped(text, columns, indent)
    .split('\n')
    .flatMap((line) => cutLines(line, columns))

export const helpText: readonly string[] = [
  'Keys',
  '',
  '  ↑ ↓  j k        select an agent or an item',
  '  PgUp PgDn  b space   page up, page down',
  '  g G  Home End   first, last',
  '',
  '  Enter  p        peek: what the agent prints; follows until you scroll up',
  "  a               attach to the agent's terminal; Ctrl-b d comes back here",
  '  n               nudge: send the agent a message',
  '  s               stop the agent; its worktree and item stay',
  '  r               start a stopped agent again, continue or reopen a parked item',
  '  l               land: queue the item for its base branch',
  '  u               undo the last stop, start or landing of this view',
  '',
  '  ?               this help',
  '  Ctrl-L          draw the screen again',
  '  Ctrl-Z          suspend; `fg` comes back',
  '  q  Ctrl-C       quit; agents keep running',
  '',
  'Rows are sorted by what needs you, then by state and name. DIRTY counts uncommitted',
  'files, AHEAD the commits that the base branch lacks; ? means unknown. LAST SIGN is',
  'when the agent last printed something or was last seen working.',
  '',
  'Stop, start, continue, reopen, land and undo ask first: y does it, any other key cancels.',
]
