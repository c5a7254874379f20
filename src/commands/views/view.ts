/*
 * Words for people, JSON for programs. In: results, reasons, notices and failures as typed values. Out: text for a
 * terminal or a chat, and JSON. No other folder turns those values into words.
 */
import { styleText } from 'node:util'
import { cutTo, displayWidth } from '../../domain/text/width.ts'

/** How to render text: colours, current time, command syntax. */
export type View = {
  readonly paint: Paint
  readonly now: number
  /** The user's home directory, shown as `~`. */
  readonly userHome: string | undefined
  /** `coppice worktree list` here, `/worktree list` in a chat. */
  readonly commandText: (command: string) => string
  /** The terminal's width; undefined if unlimited, as in a file. */
  readonly columns: number | undefined
  /** Markdown instead of colours: names in backticks, tables as code blocks. */
  readonly chat?: true
  /** Applied before a cell is cut: half a secret is no longer recognised. */
  readonly redact?: (text: string) => string
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
export type Paint = (style: Style, text: string) => string

const coloured: Paint = (style, text) => (text === '' ? '' : styleText(style, text, { validateStream: false }))
export const plain: Paint = (_style, text) => text

/** For programs: no formatting, absolute paths, command-line wording. */
export const asProgram: Omit<View, 'now'> = {
  paint: plain,
  userHome: undefined,
  commandText: (command) => `coppice ${command}`,
  columns: undefined,
}

/** In a chat only bold is rendered. */
export const markdown: Paint = (style, text) => (style === 'bold' && text !== '' ? `**${text}**` : text)

/** A branch, codebase or path, verbatim. */
export const code = (text: string, view: Pick<View, 'chat' | 'paint'>): string =>
  view.chat === true ? fenced(printable(text), '`', '') : view.paint('bold', printable(text))

/** Markdown takes `<name>` outside code for an HTML tag, and GitHub shows nothing. */
export const placeholdersAsCode = (text: string): string =>
  text.replaceAll(/`[^`]*`|<[A-Za-z][^<>`\n]{0,80}>/g, (found) => (found.startsWith('<') ? `\`${found}\`` : found))

/** Lines shown as they are: aligned columns, a command. */
export const block = (text: string, { chat }: Pick<View, 'chat'>): string =>
  chat === true ? fenced(text, '```', '\n') : text

/** A name may contain backticks, so the fence has one more. */
const fenced = (text: string, least: string, inner: string): string => {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  if (longest < least.length) return `${least}${inner}${text}${inner}${least}`
  const fence = '`'.repeat(longest + 1)
  return `${fence}${inner || ' '}${text}${inner || ' '}${fence}`
}

/** https://no-color.org: any non-empty value counts. */
export const paintFor = (
  stream: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Paint => {
  const wanted = stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  return wanted ? coloured : plain
}

/** A future time (clock set back) is "just now". */
export const ago = (at: number, now: number): string => {
  const seconds = Math.floor((now - at) / 1000)
  if (seconds < 60) return 'just now'
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ago`
  return `${Math.floor(hours / 24)} days ago`
}

export const tilde = (path: string, { userHome }: Pick<View, 'userHome'>): string =>
  userHome !== undefined && userHome !== '/' && (path === userHome || path.startsWith(`${userHome}/`))
    ? `~${path.slice(userHome.length)}`
    : path

/** File and branch names must not move the cursor or change colours. */
// eslint-disable-next-line no-control-regex
export const printable = (text: string): string => text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?')

export type Cell = { readonly text: string; readonly style?: Style }

/** Columns (by heading) to drop or cut, in this order, if a table is too wide. */
export type Fit = { readonly drop?: readonly string[]; readonly cut?: readonly string[] }

/** Aligned columns with headings; empty columns are left out. */
export const table = (headings: readonly string[], rows: readonly (readonly Cell[])[], view: View): string =>
  fittedTable(headings, rows, view).text

/** A table that fits the terminal's width, and the columns dropped for that. */
export const fittedTable = (
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  view: View,
  fit: Fit = {},
): { text: string; dropped: readonly string[] } => {
  const { lines, dropped } = fittedLines(headings, rows, view, fit)
  return { text: block(lines.join('\n'), view), dropped }
}

const fittedLines = (
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { paint: wanted, columns = Infinity, chat, redact = (text) => text }: View,
  { drop = [], cut = [] }: Fit,
): { lines: readonly string[]; dropped: readonly string[] } => {
  const paint = chat === true ? plain : wanted
  const lines: (readonly Cell[])[] = [
    headings.map((text): Cell => ({ text, style: 'dim' })),
    ...rows.map((row) => row.map((cell) => ({ ...cell, text: redact(cell.text) }))),
  ]
  const widths = headings.map((_, i) => Math.max(...lines.map((row) => displayWidth(row[i]?.text ?? ''))))
  let used = headings.map((_, i) => i).filter((i) => rows.some((row) => (row[i]?.text ?? '') !== ''))
  const total = (): number => used.reduce((sum, i) => sum + (widths[i] ?? 0), 2 * (used.length - 1))
  const dropped: string[] = []
  for (const heading of drop) {
    if (total() <= columns || !used.some((i) => headings[i] === heading)) continue
    used = used.filter((i) => headings[i] !== heading)
    dropped.push(heading)
  }
  while (total() > columns) {
    const widest = used
      .filter((i) => cut.includes(headings[i] ?? '') && (widths[i] ?? 0) > leastWidth)
      .sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0]
    if (widest === undefined) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return { lines: lines.map((row) => lineOf(row, used, widths, paint)), dropped }
}

/** Branch names are unreadable below that. */
const leastWidth = 8

/** Aligned columns without headings, for reports. */
export const aligned = (rows: readonly (readonly Cell[])[], view: View): string => {
  const most = Math.max(0, ...rows.map((row) => row.length))
  const headings = Array.from({ length: most }, () => '')
  return block(fittedLines(headings, rows, view, {}).lines.slice(1).join('\n'), view)
}

const lineOf = (row: readonly Cell[], used: readonly number[], widths: readonly number[], paint: Paint): string =>
  used
    .map((i, place) => {
      const { text, style } = row[i] ?? { text: '' }
      const last = place === used.length - 1
      const shown = cutTo(printable(text), widths[i] ?? 0)
      const padding = last ? '' : ' '.repeat(Math.max(0, (widths[i] ?? 0) - displayWidth(shown)))
      return (style === undefined ? shown : paint(style, shown)) + padding
    })
    .join('  ')
    .trimEnd()

/** `label  value` lines, the labels aligned. */
export const facts = (rows: readonly (readonly [label: string, value: string])[], { paint, chat }: View): string => {
  if (chat === true)
    return rows.map(([label, value]) => `${paint('bold', label.trim())}: ${printable(value)}`).join('\n')
  const longest = Math.max(...rows.map(([label]) => label.length))
  return rows.map(([label, value]) => `${paint('dim', label.padEnd(longest))}  ${printable(value)}`).join('\n')
}

/** Wraps at words to `columns`; all lines but the first are indented. */
export const wrapped = (text: string, columns: number, indent: number): string => {
  const lines: string[] = []
  let line: string | undefined
  for (const word of text.split(' ')) {
    const longer: string = line === undefined ? word : `${line} ${word}`
    if (line !== undefined && line.trim() !== '' && displayWidth(longer) > columns) {
      lines.push(line)
      line = ' '.repeat(indent) + word
    } else line = longer
  }
  return [...lines, line ?? ''].join('\n')
}

/** Markdown bullets, plus the number of items left out. */
export const listed = (lines: readonly string[], most: number): readonly string[] => [
  ...lines.slice(0, most).map((line) => `- ${line}`),
  ...(lines.length > most ? [`- and ${lines.length - most} more`] : []),
]

/** At the end of a sentence: bare on a terminal, to be pasted; as code in a chat, where `_` and `*` are markup. */
export const lastCommand = (command: string, { chat }: Pick<View, 'chat'>): string =>
  chat === true ? `\`${command}\`` : command
