import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { closedUnlessRegular } from './read-untrusted.ts'

/*
 * Writing where an agent can write. Opening an existing name for writing can wait for ever (a FIFO) or go through a
 * link, so a file is always made anew (O_EXCL) and put in place whole.
 */

export type WriteOptions = {
  /** Exact mode (default: 0666 minus the umask). */
  readonly mode?: number
  /** On the disk when this returns. */
  readonly sync?: boolean
}

/** Puts the file in place by a rename: readers see the old one or the new one, never half of it. */
export const replaceFileSync = (path: string, content: string, options: WriteOptions = {}): void => {
  const temporary = `${path}.${process.pid}.tmp`
  writeNewFileSync(temporary, content, options)
  try {
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Makes the file anew; what had the name before, such as the rest of a crash, is removed, never written to. */
export const writeNewFileSync = (path: string, content: string, { mode, sync = false }: WriteOptions = {}): void => {
  rmSync(path, { force: true })
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode ?? 0o666)
  try {
    if (mode !== undefined) fchmodSync(file, mode)
    writeFileSync(file, content)
    if (sync) fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Opens a private log for appending, made if needed. Never waits: anything but a regular file throws. */
export const openLogSync = (path: string): number => {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  const flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  return closedUnlessRegular(path, openSync(path, flags, 0o600))
}
