import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../domain/error-code.ts'
import { AppError } from '../../domain/errors.ts'

/** Whether a process has the FIFO open to read. */
export const isFifoRead = (path: string): boolean => {
  try {
    closeSync(openToWrite(path))
    return true
  } catch {
    return false
  }
}

const openToWrite = (path: string): number => {
  const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  return openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW)
}

/** A FIFO holds 64 kB. Whoever doesn't read for this long isn't listening. */
const WRITE_MS = 5_000

/** Writes the text into a FIFO that a program reads. Never waits for a reader; throws if there is none. */
export const writeFifo = async (path: string, text: string): Promise<void> => {
  let file: number
  try {
    file = openToWrite(path)
  } catch (cause) {
    throw new AppError('program-failed', `nobody reads ${path}`, { cause })
  }
  try {
    if (!fstatSync(file).isFIFO()) throw new AppError('unusable-file', `${path} isn't a FIFO`)
    const bytes = Buffer.from(text)
    const deadline = performance.now() + WRITE_MS
    for (let at = 0; at < bytes.length;) {
      try {
        at += writeSync(file, bytes, at)
      } catch (error) {
        if (!hasCode(error, 'EAGAIN')) throw error
        if (performance.now() > deadline) throw new AppError('timeout', `nobody reads ${path} any more`)
        await delay(20)
      }
    }
  } finally {
    closeSync(file)
  }
}
