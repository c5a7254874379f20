import { readTail } from '../../process/files/log-tail.ts'
import { shownText } from './shown-text.ts'

export const LONGEST_LOG_BYTES = 10_000_000

const TAIL_BYTES = 256_000

/** The last lines of a log, as a terminal would show them. Includes the previous log if this one was just rotated. */
export const tailOf = (file: string, lines: number): string => {
  const now = linesOf(file)
  const before = now.length < lines ? linesOf(`${file}.1`) : []
  return [...before, ...now].slice(-lines).join('\n')
}

const linesOf = (file: string): string[] => {
  const text = shownText(readTail(file, TAIL_BYTES)).trimEnd()
  return text === '' ? [] : text.split('\n')
}
