import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { hasCode } from '../../domain/error-code.ts'
import { AppError } from '../../domain/errors.ts'
import { assertRegular, readUntrustedTextSync } from '../../process/files/read-untrusted.ts'

export type LockHolder = { readonly pid: number; readonly purpose: string; readonly since: number }

export type LockFile = {
  /** Takes it without waiting; false if it is taken */
  readonly tryTake: () => boolean
  /** Tells the holder that we are waiting */
  readonly markWanted: (now: number) => void
  /** Whether somebody tried to take it since we got it */
  readonly wasWanted: () => boolean
  /** Tells waiting processes who has it. Advisory only */
  readonly announce: (holder: LockHolder) => void
  readonly holder: () => LockHolder | undefined
  /** Releases it, if taken. Taking it again is cheaper than the first time */
  readonly release: () => void
  /** Releases it and closes the file */
  readonly close: () => void
}

/**
 * The lock between processes: an exclusive SQLite transaction on `coppice.lock`, an empty file that is never deleted.
 * The kernel releases it when its holder dies, for any reason.
 *
 * Do not open `coppice.lock` anywhere else in this process: a POSIX lock is lost as soon as any descriptor of the file
 * is closed. (stat and utimes use the path, and so does creation with O_EXCL if the file exists.)
 */
export const openLockFile = (commonDir: string): LockFile => {
  const path = join(commonDir, 'coppice.lock')
  const infoPath = join(commonDir, 'coppice.lock.info')
  let database: DatabaseSync | undefined
  let opened: number | undefined
  let takenAt: number | undefined
  let announced = false
  let anchor: NodeJS.Timeout | undefined
  const shut = () => {
    database?.close()
    database = undefined
  }
  const release = () => {
    if (announced) quietly(() => rmSync(infoPath, { force: true }))
    announced = false
    takenAt = undefined
    clearInterval(anchor)
    try {
      if (database?.isTransaction === true) database.exec('ROLLBACK')
    } catch {
      shut()
    }
  }
  return {
    tryTake: () => {
      try {
        if (database === undefined) {
          opened = ensureFile(path, commonDir).ino
          database = new DatabaseSync(path, { timeout: 0 })
        }
        // MEMORY, since otherwise a journal file appears even without a write. (`defensive` refuses OFF.)
        database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
        const file = statSync(path, { throwIfNoEntry: false })
        // If the repository was deleted and cloned again since we opened it, our lock file excludes nobody.
        if (file === undefined || file.ino !== opened) shut()
        else {
          takenAt = file.mtimeMs
          // A garbage-collected DatabaseSync closes its file. Work that awaits something unreferenced is collected too,
          // and once that released the lock while its holder was alive. A timer is always referenced.
          anchor = setInterval(() => database?.isOpen, ANCHOR_MS).unref()
        }
        return takenAt !== undefined
      } catch (error) {
        if (isBusy(error)) return false
        shut()
        throw unusable(path, error)
      }
    },
    markWanted: (now) => quietly(() => utimesSync(path, now / 1000, now / 1000)),
    wasWanted: () => {
      try {
        return statSync(path).mtimeMs !== takenAt
      } catch {
        return false
      }
    },
    announce: (holder) => {
      announced = true
      quietly(() => {
        // Only the holder writes here, so one name is enough; a crash's leftover is overwritten.
        createLike(`${infoPath}.new`, statSync(commonDir), OVERWRITE, JSON.stringify(holder))
        renameSync(`${infoPath}.new`, infoPath)
      })
    },
    holder: () => readHolder(infoPath),
    release,
    close: () => {
      release()
      shut()
    },
  }
}

/** Long, since it does nothing */
const ANCHOR_MS = 3_600_000

const ensureFile = (path: string, commonDir: string): Stats => {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there !== undefined) {
    assertRegular(path, there)
    return there
  }
  try {
    createLike(path, statSync(commonDir), CREATE, '')
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  return statSync(path)
}

/** Neither follows a symbolic link or blocks on a FIFO that somebody may have put there. */
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
const OVERWRITE =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Private to the owner, unless others may write to the repository's directory (core.sharedRepository): they need the
 * lock too, and locking needs write permission, whatever our umask. If root creates it, it gets the repository's owner,
 * who otherwise couldn't lock it.
 */
const createLike = (path: string, dir: Stats, flags: number, text: string): void => {
  const fd = openSync(path, flags, 0o600)
  try {
    const group = (dir.mode & 0o020) === 0 ? 0 : 0o060
    const others = (dir.mode & 0o002) === 0 ? 0 : 0o006
    fchmodSync(fd, 0o600 | group | others)
    if (process.getuid?.() === 0) fchownSync(fd, dir.uid, dir.gid)
    if (text !== '') writeFileSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

const readHolder = (path: string): LockHolder | undefined => {
  try {
    const value: unknown = JSON.parse(readUntrustedTextSync(path, { maxBytes: 4096 }) ?? '')
    if (typeof value !== 'object' || value === null) return undefined
    const { pid, purpose, since } = value as Record<string, unknown>
    if (typeof pid !== 'number' || typeof purpose !== 'string' || typeof since !== 'number') return undefined
    return { pid, purpose, since }
  } catch {
    return undefined
  }
}

const SQLITE_BUSY = 5

/** The low byte of an extended code is the primary one. */
const isBusy = (error: unknown): boolean =>
  error instanceof Error &&
  'errcode' in error &&
  typeof error.errcode === 'number' &&
  (error.errcode & 0xff) === SQLITE_BUSY

const unusable = (path: string, cause: unknown): AppError =>
  new AppError('unexpected', `can't use the lock file ${path}: ${cause instanceof Error ? cause.message : ''}`, {
    cause,
    remedy: 'check that you can write to it; if it is damaged, delete it while Coppice is not running',
  })

/** For advisory writes: a full disk or another user's file must not stop the work. */
const quietly = (act: () => void): void => {
  try {
    act()
  } catch {
    // only advisory
  }
}
