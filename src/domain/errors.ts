import type { Remedy } from './remedy.ts'

/**
 * A fault: something that should have worked did not. Expected outcomes (refused, limit reached) are values, not errors.
 * `code` is stable and is what programs match on; `message` says what happened; `remedy` says what to do.
 */
export type ErrorCode =
  | 'usage'
  | 'config-invalid'
  | 'not-a-repository'
  | 'repository-gone'
  | 'no-commits'
  | 'name-invalid'
  | 'path-outside-root'
  | 'path-taken'
  | 'branch-in-use'
  | 'base-not-found'
  | 'remote-unreachable'
  | 'pr-not-found'
  | 'disk-full'
  | 'setup-failed'
  | 'submodules-failed'
  | 'not-found'
  | 'ambiguous'
  | 'codebase-in-use'
  | 'not-adoptable'
  | 'restore-failed'
  /** Not possible in the current state. */
  | 'refused'
  | 'busy'
  | 'cancelled'
  | 'timeout'
  | 'git-failed'
  | 'git-unavailable'
  | 'program-failed'
  | 'store-failed'
  | 'store-lost'
  | 'illegal-transition'
  | 'isolation-blocked'
  | 'unsupported'
  | 'unusable-file'
  | 'unexpected'

export type AppErrorOptions = { cause?: unknown; remedy?: Remedy }

export class AppError extends Error {
  readonly code: ErrorCode
  readonly remedy: Remedy | undefined

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.remedy = options.remedy
  }
}

/** There is no isolated environment, so the run doesn't happen. Never a reason to fall back to the shared checkout. */
export class IsolationBlockedError extends AppError {
  constructor(message: string, options: AppErrorOptions = {}) {
    super('isolation-blocked', message, options)
    this.name = 'IsolationBlockedError'
  }
}

/** No environment for a run, for whatever reason: the run doesn't start. Keeps the cause's code and remedy. */
export class NotIsolatedError extends AppError {
  override readonly cause: AppError
  /** The codebase's name. */
  readonly codebase: string

  constructor(cause: AppError, codebase: string) {
    super(cause.code, cause.message, { cause, ...(cause.remedy !== undefined && { remedy: cause.remedy }) })
    this.name = 'NotIsolatedError'
    this.cause = cause
    this.codebase = codebase
  }
}

/** A file or directory that would block git or Coppice, or can't be read to the end. */
export class UnusableFileError extends AppError {
  readonly path: string
  /** A FIFO or a device: deleting it loses nothing. */
  readonly holdsNothing: boolean

  constructor(path: string, problem: string, options: AppErrorOptions & { holdsNothing?: boolean } = {}) {
    super('unusable-file', `${path} ${problem}`, options)
    this.name = 'UnusableFileError'
    this.path = path
    this.holdsNothing = options.holdsNothing ?? false
  }
}

export const isAppError = (value: unknown, code?: ErrorCode): value is AppError =>
  value instanceof AppError && (code === undefined || value.code === code)

/** Turns any thrown value into an AppError without losing it. */
export const toAppError = (value: unknown): AppError => {
  if (value instanceof AppError) return value
  const message = value instanceof Error ? value.message : String(value)
  if (isDiskFull(value)) {
    return new AppError('disk-full', `the disk is full: ${message}`, {
      cause: value,
      remedy: 'free some space and try again; nothing was left half done',
    })
  }
  return new AppError('unexpected', message, { cause: value })
}

const isDiskFull = (value: unknown): boolean =>
  value instanceof Error &&
  (('code' in value && (value.code === 'ENOSPC' || value.code === 'EDQUOT')) ||
    /No space left on device|Disk quota exceeded/.test(value.message))
