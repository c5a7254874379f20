import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { openError, requireRegular } from './read-untrusted.ts'

/*
 * Writing where an agent can write. Opening an existing file could block forever (a FIFO) or follow a link, so files
 * are always created (O_EXCL) and moved into place.
 */

export type WriteOptions = {
  /** Exact mode (default: 0666 minus the umask). */
  readonly mode?: number
  /** Fsync before returning. */
  readonly sync?: boolean
}

/** Renames the file into place, so readers see the old or the new one, never a partial one. */
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

/** Creates the file. Anything already there, such as a crash leftover, is removed, never written to. */
export const writeNewFileSync = (
  path: string,
  content: string | Uint8Array,
  { mode, sync = false }: WriteOptions = {},
): void => {
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

/** Opens a private log for appending, or creates it. Never blocks: throws unless it is a regular file. */
export const openLogSync = (path: string): number => {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  const flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  let file: number
  try {
    file = openSync(path, flags, 0o600)
  } catch (cause) {
    throw openError(path, cause)
  }
  return requireRegular(path, file)
}
