/** How text is shown: with or without colour, at which time, with whose words for a command. */
export type View = {
  readonly paint: Paint
  readonly now: number
  /** The user's home directory, shown as `~`. */
  readonly userHome: string | undefined
  /** `coppice worktree list` here, `/worktree list` in a chat. */
  readonly say: (command: string) => string
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
export type Paint = (style: Style, text: string) => string

const codes: Record<Style, readonly [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
}

export const coloured: Paint = (style, text) =>
  text === '' ? '' : `\u001b[${codes[style][0]}m${text}\u001b[${codes[style][1]}m`
export const plain: Paint = (_style, text) => text

/** https://no-color.org: any value but an empty one counts. */
export const paintFor = (
  stream: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Paint => {
  const wanted = stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  return wanted ? coloured : plain
}

/** `in` the future is a clock that was set back: "just now". */
export const ago = (at: number, now: number): string => {
  const seconds = Math.floor((now - at) / 1000)
  if (seconds < 60) return 'just now'
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ago`
  return `${Math.floor(hours / 24)} days ago`
}

export const tilde = (path: string, { userHome }: View): string =>
  userHome !== undefined && userHome !== '/' && (path === userHome || path.startsWith(`${userHome}/`))
    ? `~${path.slice(userHome.length)}`
    : path

/** What a file or a branch may be called must not be able to move the cursor or change colours. */
// eslint-disable-next-line no-control-regex
export const printable = (text: string): string => text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?')

export type Cell = { readonly text: string; readonly style?: Style }

/** Aligned columns under their headings; a column with nothing in it is left out. */
export const table = (headings: readonly string[], rows: readonly (readonly Cell[])[], { paint }: View): string => {
  const used = headings.map((_, i) => i).filter((i) => rows.some((row) => (row[i]?.text ?? '') !== ''))
  const lines: (readonly Cell[])[] = [headings.map((text): Cell => ({ text, style: 'dim' })), ...rows]
  const widths = headings.map((_, i) => Math.max(...lines.map((row) => width(row[i]?.text ?? ''))))
  return lines
    .map((row) =>
      used
        .map((i, place) => {
          const { text, style } = row[i] ?? { text: '' }
          const shown = printable(text)
          const padding = place === used.length - 1 ? '' : ' '.repeat((widths[i] ?? 0) - width(text))
          return (style === undefined ? shown : paint(style, shown)) + padding
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Code points, with East Asian wide ones counted twice: near enough for columns. */
const width = (text: string): number => {
  let sum = 0
  for (const char of text)
    sum += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(
      char,
    )
      ? 2
      : 1
  return sum
}

/** `label  value` lines, the labels aligned. */
export const facts = (rows: readonly (readonly [label: string, value: string])[], { paint }: View): string => {
  const longest = Math.max(...rows.map(([label]) => label.length))
  return rows.map(([label, value]) => `${paint('dim', label.padEnd(longest))}  ${printable(value)}`).join('\n')
}

export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`
