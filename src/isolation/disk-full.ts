import { statfs } from 'node:fs/promises'
import { AppError, isAppError } from '../domain/errors.ts'

/**
 * On a full disk a checkout says only "unable to write file x", without the ": reason" of other errors. By now the
 * half-made tree is gone and its space is free again, so git's message is all we have.
 */
export const recogniseFullDisk = async <T>(place: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!isAppError(error) || !isFullWhileWriting(error)) throw error
    throw new AppError('disk-full', `the disk is full: what is free in ${place} was not enough for the files`, {
      cause: error,
      remedy: 'free some space and try again, or choose another place with WORKTREE_BASE; nothing was left half done',
    })
  }
}

/** Git reports the full disk, or only that it couldn't write a file. */
const isFullWhileWriting = ({ code, cause, message }: AppError): boolean => {
  if (code === 'git-failed') return wroteTooMuch.test(JSON.stringify(cause ?? message))
  const isGit = typeof cause === 'object' && cause !== null && 'operation' in cause
  return code === 'disk-full' && isGit && writing.has(cause.operation)
}

/** The git commands that write a new worktree or clone. */
const writing: ReadonlySet<unknown> = new Set(['worktree add', 'init', 'checkout'])

/** SQLite reports a full disk as an I/O error, which suggests a broken disk or a wrong owner. */
export const recogniseFullHome = async <T>(home: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!isAppError(error, 'store-failed') || !/disk I\/O error|disk is full/.test(error.message)) throw error
    const free = await statfs(home).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => Infinity,
    )
    if (free > databaseNeeds) throw error
    throw new AppError('disk-full', `the disk is full: what is free in ${home} is not enough for the database`, {
      cause: error,
      remedy: 'free some space and try again, or choose another place with --home',
    })
  }
}

/** A new database and its log take about 300 kB. */
const databaseNeeds = 1024 ** 2

const wroteTooMuch = /unable to write (?:file|new)(?![^"\\]*: [A-Z])|No space left on device/
