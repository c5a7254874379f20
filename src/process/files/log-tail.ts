import {
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs'
import { unlessMissingSync } from '../../domain/missing.ts'
import { requireRegular } from './read-untrusted.ts'

/** The last `maxBytes` of a log, as text. Empty without one. */
export const readTail = (path: string, maxBytes: number): string => {
  const file = unlessMissingSync(() => openSync(path, READING))
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

const { O_RDONLY, O_RDWR, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants
const SAFELY = O_NONBLOCK | O_NOCTTY | O_NOFOLLOW
const READING = O_RDONLY | SAFELY

/** Moves a log that is too long aside, to `<path>.1`; true if it did. Only for one that nobody has open. */
export const rotateClosed = (path: string, longestBytes: number): boolean => {
  if (sizeOf(path) <= longestBytes) return false
  renameSync(path, `${path}.1`)
  return true
}

/**
 * The same for one that a program has open for appending: copied, then emptied. What it writes between the two is lost.
 */
export const rotateOpen = (path: string, longestBytes: number): boolean => {
  if (sizeOf(path) <= longestBytes) return false
  copyFileSync(path, `${path}.1`)
  const file = openSync(path, O_RDWR | SAFELY)
  requireRegular(path, file)
  try {
    ftruncateSync(file)
  } finally {
    closeSync(file)
  }
  return true
}

const sizeOf = (path: string): number => unlessMissingSync(() => statSync(path).size) ?? 0
