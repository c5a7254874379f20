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
  /** Takes it without waiting, or says that somebody has it */
  readonly tryTake: () => boolean
  /** Tells the holder that somebody waits */
  readonly markWanted: (now: number) => void
  /** Whether somebody has tried to take it since we have it */
  readonly wasWanted: () => boolean
  /** Tells those who wait who has it. Advisory: nothing is decided by it */
  readonly announce: (holder: LockHolder) => void
  readonly holder: () => LockHolder | undefined
  /** Gives it back, if taken */
  readonly close: () => void
}

/**
 * The lock between processes: an exclusive SQLite transaction on `coppice.lock`, an empty file that is never deleted.
 * The kernel's lock under it dies with its holder, whatever killed it.
 *
 * Do not open `coppice.lock` anywhere else in this process: a POSIX lock is lost as soon as any descriptor of the file
 * is closed. (stat and utimes go by the path, and so does creation with O_EXCL when it exists.)
 */
export const openLockFile = (commonDir: string): LockFile => {
  const path = join(commonDir, 'coppice.lock')
  const infoPath = join(commonDir, 'coppice.lock.info')
  let database: DatabaseSync | undefined
  let opened: number | undefined
  let takenAt: number | undefined
  let anchor: NodeJS.Timeout | undefined
  const shut = () => {
    database?.close()
    database = undefined
  }
  return {
    tryTake: () => {
      try {
        if (database === undefined) {
          opened = ensureFile(path, commonDir).ino
          database = new DatabaseSync(path, { timeout: 0 })
        }
        // MEMORY, since a journal file would appear beside it even without a write. (OFF is refused: `defensive`.)
        database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
        const file = statSync(path)
        // A repository deleted and cloned anew while we waited has another lock file: ours keeps nobody out.
        if (file.ino !== opened) shut()
        else {
          takenAt = file.mtimeMs
          // A collected DatabaseSync closes its file. Work that waits for something nobody refers to any more is
          // collected with all it holds, and the lock was free while its holder lived; a timer is always referred to.
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
    announce: (holder) =>
      quietly(() => {
        // Only the holder writes here, so one name will do, and what a crash left is overwritten.
        createLike(`${infoPath}.new`, statSync(commonDir), OVERWRITE, JSON.stringify(holder))
        renameSync(`${infoPath}.new`, infoPath)
      }),
    holder: () => readHolder(infoPath),
    close: () => {
      if (takenAt !== undefined) quietly(() => rmSync(infoPath, { force: true }))
      takenAt = undefined
      clearInterval(anchor)
      shut()
    },
  }
}

/** Long, since nothing is done then */
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

/** Neither goes through a symbolic link or waits at a FIFO that somebody may have put there. */
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
const OVERWRITE =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * For the owner alone, unless others may write in the repository's directory (core.sharedRepository): they need the lock
 * too, and locking needs the right to write, whatever our umask. Made by root, it belongs to whom the repository does:
 * else its owner could not lock it any more.
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

/** Extended codes carry the primary one in their low byte. */
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

/** For what is only advice: a full disk or a file of another user must not stop the work. */
const quietly = (act: () => void): void => {
  try {
    act()
  } catch {
    // advice not given
  }
}
