import type { Readable } from 'node:stream'

/** Messages that are typed or sent, in order. Lines that arrive together are one message. */
export type InputLines = {
  /**
   * Waits for the next message. Undefined at the end of the input, or once `unwanted` aborts. `after`: how many queued
   * messages to skip; they stay queued.
   */
  next(unwanted?: AbortSignal, after?: number): Promise<string | undefined>
  /** How many messages have arrived and weren't taken. */
  queued(): number
  /** Stops reading, so that the process can end. */
  close(): void
}

/** Longer input is cut: nobody types that much. */
const MOST_CHARACTERS = 1_000_000
/** A terminal passes on pasted text line by line. */
const TOGETHER_MS = 50

export const readInput = (input: Readable): InputLines => {
  const messages: string[] = []
  let part = ''
  let ended = false
  let waiting: (() => void) | undefined
  const arrived = (): void => waiting?.()
  input.setEncoding('utf8')
  const takeLines = (): void => {
    const end = part.lastIndexOf('\n')
    if (end < 0) return
    const message = part.slice(0, end).trim()
    part = part.slice(end + 1)
    if (message !== '') messages.push(message)
    arrived()
  }
  let timer: NodeJS.Timeout | undefined
  input.on('data', (chunk: string) => {
    part = (part + chunk).slice(-MOST_CHARACTERS)
    clearTimeout(timer)
    timer = setTimeout(takeLines, TOGETHER_MS)
  })
  const end = (): void => {
    clearTimeout(timer)
    part += '\n'
    takeLines()
    ended = true
    arrived()
  }
  input.once('end', end)
  input.once('error', end)
  return {
    queued: () => {
      takeLines()
      return messages.length
    },
    next: async (unwanted, after = 0) => {
      const isOver = (): boolean => ended || unwanted?.aborted === true
      while (messages.length <= after && !isOver()) {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting = resolve
        const stop = (): void => resolve()
        unwanted?.addEventListener('abort', stop, { once: true })
        await promise
        unwanted?.removeEventListener('abort', stop)
      }
      return unwanted?.aborted === true ? undefined : messages.splice(after, 1)[0]
    },
    close: () => {
      clearTimeout(timer)
      input.destroy()
    },
  }
}
