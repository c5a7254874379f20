import { displayWidth, cutTo } from '../../domain/text/width.ts'
import { ago } from '../../commands/views/view.ts'
import { type Line, plainText, type Span, span } from './line.ts'
import type { Row } from './state.ts'

type Column = {
  readonly heading: string
  readonly cell: (row: Row, now: number) => Span
  /** In a narrow terminal, columns with the highest number are hidden first. 0: never hidden. */
  readonly drop: number
  /** The least and the most columns if it can be cut. */
  readonly width?: readonly [number, number]
}

const columns: readonly Column[] = [
  { heading: 'AGENT', cell: ({ agent }) => span(agent?.name ?? '–', 'bold'), drop: 0, width: [6, 30] },
  { heading: 'STATE', cell: ({ agentState, style }) => span(agentState, style), drop: 2 },
  {
    heading: 'ITEM',
    cell: ({ item }) => span(item === undefined ? '' : `${item.id} ${item.title}`),
    drop: 3,
    width: [18, 60],
  },
  { heading: 'REPOSITORY', cell: ({ codebase }) => span(codebase, 'dim'), drop: 8, width: [6, 20] },
  { heading: 'BRANCH', cell: ({ branch }) => span(branch, 'dim'), drop: 7, width: [16, 40] },
  { heading: 'DIRTY', cell: ({ dirty }) => span(dirty, dirty === 'clean' ? 'dim' : 'yellow'), drop: 5 },
  { heading: 'AHEAD', cell: ({ ahead }) => span(ahead, 'dim'), drop: 4 },
  {
    heading: 'LAST SIGN',
    cell: ({ lastSignAt }, now) => span(lastSignAt === undefined ? '' : short(lastSignAt, now), 'dim'),
    drop: 6,
  },
  { heading: 'NEEDS YOU', cell: ({ need }) => span(need, 'red'), drop: 1, width: [18, 200] },
]

const short = (at: number, now: number): string => ago(at, now).replace(/ ago$/, '')

const MARK = 2

export type ListOptions = { readonly columns: number; readonly selected: string | undefined; readonly now: number }

/** A line per row, and the headings above them. */
export const listLines = (
  rows: readonly Row[],
  { columns: room, selected, now }: ListOptions,
): { readonly heading: Line; readonly lines: readonly Line[] } => {
  const table = columns
    .map((column) => ({ column, cells: rows.map((row) => column.cell(row, now)) }))
    .filter(({ column, cells }) => {
      if (column.heading === 'REPOSITORY') return new Set(cells.flatMap(({ text }) => text || [])).size > 1
      return cells.some(({ text }) => text !== '')
    })
  const widths = fitted(
    table.map(({ column, cells }) => ({
      column,
      natural: Math.max(displayWidth(column.heading), ...cells.map(({ text }) => displayWidth(text))),
    })),
    room - MARK,
  )
  const shown = table.filter(({ column }) => widths.has(column.heading))
  const line = (cells: readonly Span[]): Span[] =>
    cells.flatMap((cell, i) => {
      const width = widths.get(shown[i]?.column.heading ?? '') ?? 0
      const text = cutTo(cell.text, width)
      const isLast = i === shown.length - 1
      const padding = isLast ? '' : ' '.repeat(Math.max(0, width - displayWidth(text)) + GAP)
      return [{ ...cell, text }, span(padding)]
    })
  return {
    heading: [span('  '), ...line(shown.map(({ column }) => span(column.heading, 'dim')))],
    lines: rows.map((row, i): Line => {
      const cells = line(shown.map(({ cells: of }) => of[i] ?? span('')))
      if (row.key !== selected) return [span('  '), ...cells]
      const text = `> ${plainText(cells)}`
      return [span(text + ' '.repeat(Math.max(0, room - displayWidth(text))), 'inverse')]
    }),
  }
}

const GAP = 2

type Wanted = { readonly column: Column; readonly natural: number }

/** The width of each column that is shown, by its heading. */
const fitted = (wanted: readonly Wanted[], room: number): ReadonlyMap<string, number> => {
  const leastOf = ({ column: { width }, natural }: Wanted): number => Math.min(natural, width?.[0] ?? natural)
  const mostOf = ({ column: { width }, natural }: Wanted): number => Math.min(natural, width?.[1] ?? natural)
  const total = (all: readonly Wanted[], of: (one: Wanted) => number): number =>
    all.reduce((sum, one) => sum + of(one), GAP * (all.length - 1))
  let used = wanted
  for (const { column } of wanted.toSorted((a, b) => b.column.drop - a.column.drop)) {
    if (column.drop === 0 || total(used, leastOf) <= room) break
    used = used.filter((one) => one.column !== column)
  }
  const widths = new Map(used.map((one) => [one.column.heading, leastOf(one)]))
  // What is left goes to the columns that lack most, so that none is wider than it has to be.
  let left = room - total(used, leastOf)
  while (left > 0) {
    const next = used
      .map((one) => ({ one, width: widths.get(one.column.heading) ?? 0 }))
      .filter(({ one, width }) => width < mostOf(one))
      .toSorted((a, b) => a.width - b.width)[0]
    if (next === undefined) break
    widths.set(next.one.column.heading, next.width + 1)
    left -= 1
  }
  return widths
}
