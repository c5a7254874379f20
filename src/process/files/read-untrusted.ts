import { closeSync, constants, copyFile, type Stats, fstatSync, lstatSync, openSync, readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { hasCode } from '../../domain/error-code.ts'
import { type AppError, UnusableFileError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'

/*
 * The only way to read a file that an agent or repository can write. It may be a FIFO (opening waits for a writer
 * forever), an endless device, a link to either, or huge. So nothing here blocks, checks are made on the open file, and
 * reads are capped.
 */

export type ReadOptions = {
  /** Larger files are refused (default: 1 MB). */
  readonly maxBytes?: number
  /** Follow a link at the end of the path: only for files that people maintain, such as `config.yaml`. */
  readonly followLink?: boolean
}

const defaultMaxBytes = 1024 * 1024

type Path = string | Buffer

/** The whole file; undefined if missing. Throws, saying why, unless it is a regular file within the size limit. */
export const readUntrustedSync = (path: Path, options: ReadOptions = {}): Buffer | undefined => {
  const file = openSyncUntrusted(path, options)
  if (file === undefined) return undefined
  try {
    const { maxBytes = defaultMaxBytes } = options
    const stat = fstatSync(file)
    assertRegular(path, stat)
    const size = checkedSize(path, stat, maxBytes)
    // One extra byte, to notice a file that grows while it is read.
    const buffer = Buffer.allocUnsafe(size + 1)
    const length = fillSync(file, buffer, size)
    if (length <= size) return buffer.subarray(0, length)
    throw changedError(path)
  } finally {
    closeSync(file)
  }
}

export const readUntrustedTextSync = (path: Path, options?: ReadOptions): string | undefined =>
  readUntrustedSync(path, options)?.toString('utf8')

export const readUntrusted = async (path: Path, options: ReadOptions = {}): Promise<Buffer | undefined> => {
  const file = await openUntrusted(path, options)
  if (file === undefined) return undefined
  try {
    const { maxBytes = defaultMaxBytes } = options
    const size = checkedSize(path, await file.stat(), maxBytes)
    const buffer = Buffer.allocUnsafe(size + 1)
    const length = await readFully(file, buffer, 0)
    if (length <= size) return buffer.subarray(0, length)
    throw changedError(path)
  } finally {
    await file.close()
  }
}

export const readUntrustedText = async (path: Path, options?: ReadOptions): Promise<string | undefined> =>
  (await readUntrusted(path, options))?.toString('utf8')

/** An open regular file of any size, for the caller to read and close; undefined if missing. */
export const openUntrusted = async (
  path: Path,
  { followLink = false }: Pick<ReadOptions, 'followLink'> = {},
): Promise<FileHandle | undefined> => {
  let file: FileHandle
  try {
    file = await open(path, readFlags(followLink))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw openError(path, error)
  }
  try {
    assertRegular(path, await file.stat())
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Fills the buffer from `position` and returns the byte count. One read may return less than asked before the end. */
export const readFully = async (file: FileHandle, buffer: Buffer, position: number): Promise<number> => {
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, position + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return length
}

/**
 * Copies a regular file with its mode, sharing blocks where supported. `to` must not exist. Copies the opened file even
 * if its name is replaced meanwhile. False if there is no such file.
 */
export const copyUntrusted = async (from: Path, to: Path): Promise<boolean> => {
  const file = await openUntrusted(from)
  if (file === undefined) return false
  try {
    // Reopens the same file on Linux. Elsewhere the check above has to do.
    const source = process.platform === 'linux' ? `/proc/self/fd/${file.fd}` : from
    await copyByName(source, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
    return true
  } finally {
    await file.close()
  }
}

const copyByName = promisify(copyFile)

/** Throws unless it is a regular file; for callers that already have its stat. */
export const assertRegular = (path: Path, stat: Pick<Stats, 'isFile'> & Kinds): void => {
  if (!stat.isFile()) throw notAFile(path, stat)
}

type Kinds = Pick<
  Stats,
  'isDirectory' | 'isFIFO' | 'isSocket' | 'isSymbolicLink' | 'isCharacterDevice' | 'isBlockDevice'
>

/** In words: `a FIFO`, `a directory`. */
export const kindOf = (stat: Kinds): string => {
  if (stat.isDirectory()) return 'a directory'
  if (stat.isFIFO()) return 'a FIFO'
  if (stat.isSocket()) return 'a socket'
  if (stat.isSymbolicLink()) return 'a symbolic link'
  return stat.isCharacterDevice() || stat.isBlockDevice() ? 'a device' : 'something else'
}

export const isPipeOrDevice = (stat: Pick<Kinds, 'isFIFO' | 'isCharacterDevice' | 'isBlockDevice'>): boolean =>
  stat.isFIFO() || stat.isCharacterDevice() || stat.isBlockDevice()

export const notAFile = (path: Path, stat: Kinds): AppError =>
  unusable(path, kindOf(stat), { holdsNothing: isPipeOrDevice(stat) })

const unusable = (path: Path, kind: string, more: { cause?: unknown; holdsNothing?: boolean }): AppError =>
  new UnusableFileError(String(path), `is ${kind}, not a file`, {
    ...more,
    remedy: `remove ${String(path)} or put the file back, then try again`,
  })

export const tooLarge = (path: Path, size: number, maxBytes: number): AppError =>
  new UnusableFileError(String(path), `is too large: ${size} bytes (limit: ${maxBytes})`, {
    remedy: `remove ${String(path)} or put the file back, then try again`,
  })

/**
 * O_NONBLOCK: opening never blocks, neither on a FIFO nor on a file with a lease (which would wait 45 s). O_NOCTTY:
 * opening a terminal doesn't make it ours.
 */
const readFlags = (followLink: boolean): number =>
  constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | (followLink ? 0 : constants.O_NOFOLLOW)

/** Not yet known to be a regular file. */
const openSyncUntrusted = (path: Path, { followLink = false }: ReadOptions): number | undefined => {
  try {
    // Many of the files asked for don't exist, and an open that fails costs ten times as much: it makes an Error.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
    return openSync(path, readFlags(followLink))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw openError(path, error)
  }
}

/** Returns the file if it is regular; otherwise closes it and throws. */
export const requireRegular = (path: Path, file: number): number => {
  try {
    assertRegular(path, fstatSync(file))
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** Why it couldn't be opened, if that is because of what it is. */
export const openError = (path: Path, cause: unknown): unknown => {
  // For a link, FreeBSD returns EMLINK; for a socket, or a FIFO that nobody reads, open returns ENXIO.
  if (hasCode(cause, 'ELOOP') || hasCode(cause, 'EMLINK')) return unusable(path, 'a symbolic link', { cause })
  if (hasCode(cause, 'ENXIO') || hasCode(cause, 'ENODEV'))
    return unusable(path, 'a socket, a FIFO or a device', { cause })
  if (hasCode(cause, 'EISDIR')) return unusable(path, 'a directory', { cause })
  if (hasCode(cause, 'EAGAIN')) {
    return new UnusableFileError(String(path), 'is locked by another program', { cause, remedy: 'try again' })
  }
  // Unreadable (EACCES, EIO): the caller knows better what that means.
  return cause
}

const checkedSize = (path: Path, { size }: Stats, maxBytes: number): number => {
  if (size > maxBytes) throw tooLarge(path, size, maxBytes)
  return size
}

const changedError = (path: Path): AppError =>
  new UnusableFileError(String(path), 'changed while it was read', { remedy: 'try again' })

/** Until it has at least this much or the file ends. */
const fillSync = (file: number, buffer: Buffer, least: number): number => {
  let length = 0
  while (length < least) {
    const read = readSync(file, buffer, length, buffer.length - length, length)
    if (read === 0) break
    length += read
  }
  return length
}
