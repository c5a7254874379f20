import { readTail } from '../../process/files/log-tail.ts'

export const LONGEST_LOG_BYTES = 10_000_000

const TAIL_BYTES = 256_000

/** The last lines of a log, as plain text. Includes the previous log if this one was just rotated. */
export const tailOf = (file: string, lines: number): string => {
  const now = linesOf(file)
  const before = now.length < lines ? linesOf(`${file}.1`) : []
  return [...before, ...now].slice(-lines).join('\n')
}

const linesOf = (file: string): string[] => {
  const text = plainText(readTail(file, TAIL_BYTES)).trimEnd()
  return text === '' ? [] : text.split('\n')
}

/** Removes escape sequences, which move the cursor or set colors and titles. */
const plainText = (text: string): string =>
  text.replaceAll(SEQUENCE, '').replaceAll('\r\n', '\n').replaceAll(CONTROLS, '')

/** A control sequence, an operating system command, or a short one. */
const SEQUENCE = new RegExp(
  String.raw`\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[ -/]{0,8}[0-~])`,
  'g',
)

/** Control characters except tabs and line feeds. */
const CONTROLS = /(?![\t\n])\p{Cc}/gu
