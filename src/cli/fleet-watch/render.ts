import { displayWidth } from '../../domain/text/width.ts'
import { counted } from '../../domain/text/words.ts'
import { helpText, peekRows, sharesOf, wrappedLines } from './layout.ts'
import { cutLine, type Line, type LineStyle, span, spread, widthOf } from './line.ts'
import { listLines } from './list.ts'
import { describeAction } from './questions.ts'
import { type Message, rowsOf, selectedRow, type State, type View } from './state.ts'

export type Frame = {
  /** As many as the screen has rows. */
  readonly lines: readonly Line[]
  /** Where text is being typed. */
  readonly cursor: { readonly row: number; readonly column: number } | undefined
}

export const render = (state: State): Frame => {
  const { size } = state
  const above = state.view.kind === 'help' ? helpLines(state, state.view) : viewLines(state)
  const bottom = bottomOf(state)
  // A long question covers what is above it.
  const kept = Math.max(0, size.rows - bottom.lines.length)
  const lines = [...filled(above, kept), ...bottom.lines].slice(0, size.rows)
  const shown = filled(lines, size.rows).map((line) => cutLine(line, size.columns))
  const row = kept + (bottom.cursor?.row ?? 0)
  const cursor = bottom.cursor === undefined || row >= size.rows ? undefined : { row, column: bottom.cursor.column }
  return { lines: shown, cursor }
}

const filled = (lines: readonly Line[], height: number): Line[] =>
  Array.from({ length: height }, (_, i): Line => lines[i] ?? [])

const viewLines = (state: State): Line[] =>
  state.view.kind === 'peek' ? peekLines(state, state.view) : overviewLines(state)

const overviewLines = (state: State): Line[] => {
  const { size, top, selected, now } = state
  const { summary, headings, body, details } = sharesOf(size)
  const rows = rowsOf(state)
  const { heading, lines } = listLines(rows, { columns: size.columns, selected, now })
  const visible = lines.slice(top, top + body)
  return [
    ...(summary > 0 ? [summaryLine(state)] : []),
    ...(headings > 0 ? [rows.length === 0 ? [] : heading] : []),
    ...filled(rows.length === 0 ? [[span(emptyText(state), 'dim')]] : visible, body),
    ...(details > 0 ? detailLines(state, details) : []),
  ]
}

const emptyText = ({ picture }: State): string =>
  picture === undefined ? 'Reading the fleet …' : 'No agents. Start one in another terminal: coppice sling <item>'

const summaryLine = ({ picture, problem, size, top }: State): Line => {
  const { columns } = size
  if (problem !== undefined) return cutLine([span(`Couldn't refresh: ${problem}`, 'red')], columns)
  if (picture === undefined) return [span('Fleet', 'bold')]
  const needing = picture.rows.filter(({ need }) => need !== '').length
  const body = sharesOf(size).body
  const total = picture.rows.length
  const left: Line = [
    span('Fleet', 'bold'),
    ...(picture.stopped === undefined ? [] : [span(`  ${picture.stopped}`, 'red' as const)]),
    needing === 0
      ? span('  nothing needs you', 'green')
      : span(`  ${counted(needing, 'needs you', 'need you')}`, 'red'),
    span(`  ${counted(picture.rows.filter(({ agent }) => agent !== undefined).length, 'agent')}`),
    span(`  ${picture.pools}  ${picture.items}`, 'dim'),
  ]
  const right: Line = total > body ? [span(`${top + 1}–${Math.min(total, top + body)} of ${total}`, 'dim')] : []
  return spread(cutLine(left, columns - (right.length === 0 ? 0 : widthOf(right) + 2)), right, columns)
}

const detailLines = (state: State, height: number): Line[] => {
  const { columns } = state.size
  const row = selectedRow(state)
  const rule: Line = [span('─'.repeat(columns), 'dim')]
  if (row === undefined) return filled([rule], height)
  const wrappedDetails = row.details.flatMap((text, i) =>
    wrappedLines(text, columns, 2).map((line): Line => [i === 0 && row.need !== '' ? span(line, 'bold') : span(line)]),
  )
  return filled([rule, ...wrappedDetails.slice(0, height - 1)], height)
}

const peekLines = (state: State, view: Extract<View, { kind: 'peek' }>): Line[] => {
  const { size } = state
  const { lines, height } = peekRows(state, view)
  const last = Math.max(0, lines.length - height)
  const top = Math.min(last, view.top ?? last)
  const right: Line = [
    span(
      view.top === undefined ? 'following' : `${top + 1}–${Math.min(lines.length, top + height)} of ${lines.length}`,
      'dim',
    ),
  ]
  const row = rowsOf(state).find(({ agent }) => agent?.id === view.agent.id)
  const left: Line = [
    span(view.agent.name, 'bold'),
    span(`  ${row?.agentState ?? 'gone'}`, row?.style ?? 'dim'),
    span(`  ${view.title}`),
  ]
  const room = size.columns - widthOf(right) - 2
  const empty =
    view.lines === undefined
      ? 'Reading …'
      : lines.every((line) => line.trim() === '')
        ? `${view.agent.name} has printed nothing yet.`
        : undefined
  return [
    ...(sharesOf(size).summary > 0 ? [spread(cutLine(left, Math.max(8, room)), right, size.columns)] : []),
    ...filled(
      empty === undefined ? lines.slice(top, top + height).map((line) => [span(line)]) : [[span(empty, 'dim')]],
      height,
    ),
  ]
}

const helpLines = ({ size }: State, { top }: Extract<View, { kind: 'help' }>): Line[] =>
  helpText.slice(top, top + size.rows).map((text, i): Line => [top + i === 0 ? span(text, 'bold') : span(text)])

type Bottom = {
  readonly lines: readonly Line[]
  readonly cursor: { readonly row: number; readonly column: number } | undefined
}

/** The question or message, and the keys. */
const bottomOf = (state: State): Bottom => {
  const { prompt, size, view } = state
  const { columns } = size
  const { hints } = sharesOf(size)
  if (prompt?.kind === 'confirm') {
    const question = prompt.question.flatMap((text) => wrappedLines(text, columns))
    const answer: Line = [span('y', 'bold'), span(' yes   '), span('any other key', 'bold'), span(' no')]
    // The first lines say what it is about.
    const most = Math.max(1, size.rows - 1)
    return {
      lines: [...question.slice(0, most).map((line): Line => [span(line, 'yellow')]), answer],
      cursor: undefined,
    }
  }
  if (prompt?.kind === 'nudge') return inputLine(state, prompt)
  const message = messageLines(state)
  if (view.kind === 'help') return { lines: [[span('Esc back', 'dim')]], cursor: undefined }
  return { lines: [...message, ...(hints > 0 ? [hintLine(state)] : [])], cursor: undefined }
}

const inputLine = (
  { size: { columns } }: State,
  { agent, input }: Extract<NonNullable<State['prompt']>, { kind: 'nudge' }>,
): Bottom => {
  const label = `Message to ${agent.name}: `
  const room = Math.max(1, columns - displayWidth(label) - 1)
  // The end of what is before the cursor is always shown.
  let from = input.at
  let used = 0
  while (from > 0 && (used += displayWidth(input.characters[from - 1] ?? '')) <= room) from -= 1
  const shown = input.characters.slice(from, input.at).join('')
  const rest = input.characters.slice(input.at, input.at + columns).join('')
  const line: Line = [span(label, 'yellow'), span(shown), span(rest)]
  return {
    lines: [line, [span('Enter send   Esc cancel', 'dim')]],
    cursor: { row: 0, column: Math.min(columns - 1, displayWidth(label) + displayWidth(shown)) },
  }
}

const styles: Readonly<Record<Message['tone'], LineStyle | undefined>> = { good: 'green', bad: 'red', plain: undefined }

const messageLines = ({ message, running, now, size, view }: State): Line[] => {
  const { message: share, details } = sharesOf(size)
  if (share === 0) return []
  if (message !== undefined) {
    const most = view.kind === 'list' ? Math.max(1, details) : 3
    const lines = wrappedLines(message.text, size.columns)
    return lines.slice(0, most).map((line): Line => [span(line, styles[message.tone])])
  }
  const text = running.map(
    ({ action, since }) => `${describeAction(action)} … ${Math.max(0, Math.floor((now - since) / 1000))} s`,
  )
  return [text.length === 0 ? [] : [span(text.join(', '), 'yellow')]]
}

const hintLine = ({ view, size }: State): Line => {
  const all: readonly (readonly [string, string])[] =
    view.kind === 'peek'
      ? [
          ['Esc', 'back'],
          ['a', 'attach'],
          ['n', 'nudge'],
          ['s', 'stop'],
          ['↑↓', 'scroll'],
          ['G', 'follow'],
          ['?', 'help'],
        ]
      : [
          ['a', 'attach'],
          ['p', 'peek'],
          ['n', 'nudge'],
          ['s', 'stop'],
          ['r', 'resume'],
          ['l', 'land'],
          ['u', 'undo'],
          ['?', 'help'],
          ['q', 'quit'],
        ]
  const line = all.flatMap(([key, what], i): Line => [
    span(i === 0 ? '' : '  '),
    span(key, 'bold'),
    span(` ${what}`, 'dim'),
  ])
  return widthOf(line) <= size.columns ? line : [span(all.map(([key]) => key).join(' '), 'bold')]
}
