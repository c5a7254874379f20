import { StringDecoder } from 'node:string_decoder'
import type { ReadStream, WriteStream } from 'node:tty'
import { suspendGroup } from '../../process/suspend.ts'
import { type Key, parseKeys } from './keys.ts'
import { type LinePaint, paintLine, widthOf } from './line.ts'
import type { Frame } from './render.ts'
import type { Size } from './state.ts'

export type ScreenOptions = {
  readonly input: ReadStream
  readonly output: WriteStream
  readonly paint: LinePaint
  readonly onKey: (key: Key) => void
  /** The size may have changed, and the screen is empty. */
  readonly onResized: () => void
  /** The terminal is gone. */
  readonly onLost: () => void
}

export type Screen = {
  readonly size: () => Size
  /** Nothing can be drawn while it is lent or suspended. */
  readonly isOpen: () => boolean
  /** Writes the lines that differ from what is shown. */
  readonly draw: (frame: Frame) => void
  /** The next frame is drawn whole: something else may have written on the screen. */
  readonly forget: () => void
  /** Gives the terminal to somebody else, as it was before. */
  readonly lend: (use: () => Promise<void>) => Promise<void>
  /** Until the shell continues us. */
  readonly suspend: () => Promise<void>
  readonly close: () => void
}

/** The other screen without its cursor, lines that don't wrap, and pasted text in brackets. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?2004h\u001b[2J'
/** Ends a frame that was interrupted, too. */
const LEAVE = '\u001b[?2026l\u001b[0m\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l'

/** A key of its own if nothing follows: sequences arrive in one piece, or nearly so. */
const ESCAPE_MS = 50

/**
 * The whole terminal, until it is closed. It is restored however this process ends, except by SIGKILL: at its exit and
 * before an exception that nobody catches is reported.
 */
export const openScreen = ({ input, output, paint, onKey, onResized, onLost }: ScreenOptions): Screen => {
  let isOpen = false
  let shown: readonly string[] = []
  let shownCursor = ''
  let pending = ''
  let decoder = new StringDecoder('utf8')
  let escape: NodeJS.Timeout | undefined

  const read = (text: string, isAll = false): void => {
    clearTimeout(escape)
    const { keys, rest } = parseKeys(pending + text, { isAll })
    pending = rest
    if (rest !== '') escape = setTimeout(() => read('', true), ESCAPE_MS)
    // What was typed for the next program in the terminal isn't ours.
    for (const key of keys) if (isOpen) onKey(key)
  }
  const onData = (bytes: Buffer): void => read(decoder.write(bytes))
  const onSize = (): void => {
    forget()
    onResized()
  }
  /** Somebody stopped us without asking, and the shell has set up the terminal for itself. */
  const onContinued = (): void => {
    leave()
    enter()
  }
  const forget = (): void => {
    shown = []
    shownCursor = ''
  }
  const write = (text: string): void => void output.write(text)
  const suspend = async (): Promise<void> => {
    leave()
    await suspendGroup()
    enter()
  }
  const onSuspend = (): void => void suspend()

  const enter = (): void => {
    if (isOpen) return
    isOpen = true
    decoder = new StringDecoder('utf8')
    input.setRawMode(true)
    input.on('data', onData).resume()
    output.on('resize', onSize)
    process.on('SIGTSTP', onSuspend).on('SIGCONT', onContinued)
    write(ENTER)
    onSize()
  }
  const leave = (): void => {
    if (!isOpen) return
    isOpen = false
    clearTimeout(escape)
    pending = ''
    input.off('data', onData).pause()
    output.off('resize', onSize)
    process.off('SIGTSTP', onSuspend).off('SIGCONT', onContinued)
    write(LEAVE)
    try {
      input.setRawMode(false)
    } catch {
      // The terminal is gone.
    }
  }
  const close = (): void => {
    leave()
    process.off('exit', leave).off('uncaughtExceptionMonitor', leave)
    input.off('end', onLost).off('error', onLost)
    output.off('error', onLost)
  }

  process.on('exit', leave).on('uncaughtExceptionMonitor', leave)
  input.on('end', onLost).on('error', onLost)
  output.on('error', onLost)
  enter()
  return {
    size: () => ({ columns: Math.max(1, output.columns), rows: Math.max(1, output.rows) }),
    isOpen: () => isOpen,
    draw: ({ lines, cursor }) => {
      if (!isOpen) return
      const { columns } = output
      const next = lines.map((line) => paintLine(line, columns, paint))
      const changed = next.flatMap((text, i) => {
        if (text === shown[i]) return []
        // In the last column, erasing would erase the last character, too.
        const erase = widthOf(lines[i] ?? []) < columns ? '\u001b[K' : ''
        return [`\u001b[${i + 1};1H${text}${erase}`]
      })
      const at = cursor === undefined ? '\u001b[?25l' : `\u001b[${cursor.row + 1};${cursor.column + 1}H\u001b[?25h`
      if (changed.length === 0 && at === shownCursor) return
      const clear = shown.length === 0 ? '\u001b[2J' : ''
      shown = next
      shownCursor = at
      // In one piece, which a terminal that can do so shows at once.
      write(`\u001b[?2026h${clear}${changed.join('')}${at}\u001b[?2026l`)
    },
    forget,
    lend: async (use) => {
      leave()
      try {
        await use()
      } finally {
        enter()
      }
    },
    suspend,
    close,
  }
}
