import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { unlessMissingSync } from '../../domain/missing.ts'
import { openError, requireRegular } from './read-untrusted.ts'

/** The last `maxBytes` of a log, as text. Empty without one. */
export const readTail = (path: string, maxBytes: number): string => {
  const file = opened(path)
  if (file === undefined) return ''
  requireRegular(path, file)
  try {
    const { size } = fstatSync(file)
    const buffer = Buffer.alloc(Math.min(size, maxBytes))
    const length = readSync(file, buffer, 0, buffer.length, size - buffer.length)
    return buffer.toString('utf8', 0, length)
  } finally {
    closeSync(file)
  }
}

const opened = (path: string): number | undefined => {
  try {
    return unlessMissingSync(() => openSync(path, READING))
  } catch (error) {
    throw openError(path, error)
  }
}

const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants
const READING = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW
