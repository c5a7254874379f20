/** The size that tmux gives to a session until somebody attaches. */
const ROWS = 50

/**
 * What a terminal would have shown of this output in the end, with what has scrolled away. Programs with an interface of
 * their own move the cursor instead of printing spaces, and print over what they printed before.
 */
export const shownText = (output: string): string => {
  const screen = createScreen()
  for (const { 0: part, groups = {} } of output.matchAll(PART)) {
    const { parameters = '', command, text } = groups
    if (text !== undefined) screen.print(text)
    else if (command !== undefined) screen.control(command, parameters)
    else if (part === '\n') screen.control('E', '')
    else if (part === '\r') screen.control('G', '')
    else if (part === '\b') screen.control('D', '')
  }
  return screen.text()
}

/** A control sequence, a string for the terminal itself, another sequence, a control character, or text. */
const PART = new RegExp(
  String.raw`\x1b(?:\[(?<parameters>[0-?]{0,64})[ -/]{0,8}(?<command>[@-~])|[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[ -/]{0,8}[0-~])|(?!\t)\p{Cc}|(?<text>(?:\t|\P{Cc})+)`,
  'gu',
)

type Screen = {
  readonly print: (text: string) => void
  readonly control: (command: string, parameters: string) => void
  readonly text: () => string
}

const createScreen = (): Screen => {
  const lines: string[][] = [[]]
  let [row, column] = [0, 0]
  const lineAt = (at: number): string[] => {
    while (lines.length <= at) lines.push([])
    return lines[at] ?? []
  }
  const top = (): number => Math.max(0, lines.length - ROWS)
  const eraseLine = (how: number): void => {
    const line = lineAt(row)
    if (how === 0) line.splice(column)
    else line.fill(' ', 0, how === 1 ? column + 1 : line.length)
  }
  const newLine = (): void => {
    ;[row, column] = [row + 1, 0]
    if (row < MOST_LINES) return
    lines.splice(0, MOST_LINES / 2)
    row -= MOST_LINES / 2
  }
  return {
    print: (text) => {
      const line = lineAt(row)
      while (line.length < column) line.push(' ')
      for (const char of text) line[column++] = char
    },
    control: (command, parameters) => {
      const [first, second] = parameters.split(';').map(Number)
      const count = Math.max(1, first ?? 1)
      if (command === 'A') row = Math.max(top(), row - count)
      else if (command === 'B') row = Math.max(row, Math.min(row + count, top() + ROWS - 1))
      else if (command === 'C') column = Math.max(column, Math.min(column + count, MOST_COLUMNS))
      else if (command === 'D') column = Math.max(0, column - count)
      else if (command === 'E') newLine()
      else if (command === 'G') column = Math.min(count, MOST_COLUMNS) - 1
      else if (command === 'H') {
        row = top() + Math.min(count, ROWS) - 1
        column = Math.min(Math.max(1, second ?? 1), MOST_COLUMNS) - 1
      } else if (command === 'K') eraseLine(first ?? 0)
      else if (command === 'J' && (first ?? 0) === 0) {
        eraseLine(0)
        lines.splice(row + 1)
      } else if (command === 'J') [row, column] = [lines.length, 0]
    },
    text: () => lines.map((line) => line.join('').trimEnd()).join('\n'),
  }
}

/** No terminal is wider; a number from a log could be anything. */
const MOST_COLUMNS = 1_000

/** Half of them are more than anybody may ask for. */
const MOST_LINES = 2_000
