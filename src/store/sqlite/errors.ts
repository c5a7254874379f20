import { AppError } from '../../domain/errors.ts'

/** SQLite's primary result codes, https://sqlite.org/rescode.html; extended ones have them in the low byte. */
const primary = { error: 1, busy: 5, readonly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 }
const extended = { primaryKey: 1555, unique: 2067 }

export const isBusy = (error: unknown): boolean => primaryCode(error) === primary.busy

export const isUniqueViolation = (error: unknown): boolean => {
  const code = extendedCode(error)
  return code === extended.unique || code === extended.primaryKey
}

/** SQLite has no specific code for this. */
export const isMissingTable = (error: unknown): boolean =>
  primaryCode(error) === primary.error && error instanceof Error && error.message.startsWith('no such table')

export const busyError = (file: string, waited: number, cause: unknown): AppError =>
  new AppError('store-failed', `another process has held the database ${file} for ${Math.round(waited / 1000)} s`, {
    cause,
    remedy: 'find and stop the coppice process that is stuck, then try again',
  })

/** Explains errors that users can fix; returns others unchanged. */
export const explainError = (error: unknown, file: string): unknown => {
  const [code, message, remedy] = explanation(error, file)
  return message === undefined ? error : new AppError(code, message, { cause: error, remedy })
}

type Explanation = ['disk-full' | 'store-failed', string | undefined, string]

const explanation = (error: unknown, file: string): Explanation => {
  const text = error instanceof Error ? error.message : String(error)
  switch (primaryCode(error)) {
    case primary.full:
      return ['disk-full', `the disk is full: ${file} can't grow`, 'free some space and try again; nothing changed']
    case primary.notADatabase:
    case primary.corrupt:
      return ['store-failed', `can't read the database ${file}: ${text}`, 'move the file aside, or restore a backup']
    case primary.cannotOpen:
    case primary.readonly:
    case primary.ioError:
      return [
        'store-failed',
        `can't use the database ${file}: ${text}`,
        'check that you own the file and its directory',
      ]
    default:
      return ['store-failed', undefined, '']
  }
}

const primaryCode = (error: unknown): number | undefined => {
  const code = extendedCode(error)
  return code === undefined ? undefined : code & 0xff
}

const extendedCode = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined
