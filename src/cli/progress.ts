import type { Clock } from '../domain/clock.ts'
import { printable } from '../commands/views/view.ts'

export type Progress = {
  /** What we are waiting for now. */
  readonly say: (message: string) => void
  /** Removes the line; the next message starts over. */
  readonly clear: () => void
}

export type ProgressOptions = {
  readonly write: (text: string) => void
  readonly isTerminal: boolean
  readonly columns: () => number
  readonly clock: Clock
  /** Minimum wait to show (default: 1 s). */
  readonly afterMs?: number
}

/**
 * One line on standard error with what we are waiting for, after a second. On a terminal it is redrawn and finally
 * removed; elsewhere each message is a line.
 */
export const createProgress = ({ write, isTerminal, columns, clock, afterMs = 1000 }: ProgressOptions): Progress => {
  let timer: NodeJS.Timeout | undefined
  let message = ''
  let since = 0
  let shown = false

  const draw = () => {
    const text = printable(`${message} … ${Math.floor((clock() - since) / 1000)} s`)
    write(`\r\u001b[2K${text.slice(0, Math.max(20, columns() - 1))}`)
    shown = true
  }
  const show = () => {
    if (!isTerminal) {
      write(`${printable(message)} …\n`)
      return
    }
    draw()
    timer = setInterval(draw, 500).unref()
  }
  const stop = () => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    say: (next) => {
      // A new number isn't a new wait: a clone reports its percentage many times a second.
      const goesOn = message !== '' && phase(next) === phase(message)
      message = next
      if (goesOn) return
      const wasShown = shown
      stop()
      since = clock()
      if (wasShown) show()
      else timer = setTimeout(show, afterMs).unref()
    },
    clear: () => {
      stop()
      if (shown) write('\r\u001b[2K')
      shown = false
      message = ''
    },
  }
}

const phase = (text: string): string => text.replace(/\d{1,3}%$/, '')
