import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs'
import { posix } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { hasCode } from '../../domain/error-code.ts'
import { AppError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'
import { rawBytes, shownPath, toRaw } from '../../domain/text/raw-path.ts'
import { trimEndOf } from '../../domain/text/trim-end.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { listInPieces } from './list-directory.ts'
import { remedy, shell } from '../../domain/remedy.ts'

/**
 * The only function that deletes a directory tree. It never leaves the file system it starts on and never follows a
 * link: not into a bind mount of the same device, not into something mounted meanwhile, not through a directory swapped
 * for a link. It keeps what it must not cross and deletes the rest.
 */
export const deleteTree = async (path: string | Buffer, options: DeleteOptions = {}): Promise<void> => {
  const steps = deleteSteps(path, options)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return throwIfKept(path, step.value)
    await nextTurn()
  }
}

/** Never yields: for a process with nothing else to do. */
export const deleteTreeSync = (path: string | Buffer, options: DeleteOptions = {}): void => {
  const steps = deleteSteps(path, options)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return throwIfKept(path, step.value)
  }
}

export type DeleteOptions = {
  /** Called for each directory below the top that has a `.git` entry. Returns a reason to keep its whole tree. */
  readonly leave?: (directory: Buffer) => string | undefined
}

type Kept = { readonly path: string; readonly reason: string }

const throwIfKept = (path: string | Buffer, kept: readonly Kept[]): void => {
  if (kept.length === 0) return
  const named = kept.slice(0, 3).map((one) => `${one.path} (${one.reason})`)
  const mountedAt = kept.find(({ reason }) => reason === mounted)
  const more = kept.length > 3 ? ` and ${kept.length - 3} more` : ''
  throw new AppError('path-taken', `couldn't delete all of ${path.toString()}: ${named.join(', ')}${more}`, {
    remedy: mountedAt === undefined ? 'check these paths' : remedy`${shell(`umount ${shellWord(mountedAt.path)}`)}`,
  })
}

const mounted = 'something is mounted there'

/** Yields after this many entries. */
const entriesPerTurn = 256

function* deleteSteps(path: string | Buffer, { leave }: DeleteOptions): Generator<void, Kept[]> {
  const top = trimEndOf(toRaw(Buffer.from(path)), '/')
  const kept: Kept[] = []
  let done = 0

  const keep = (shown: string, reason: string): false => {
    kept.push({ path: shownPath(shown), reason })
    return false
  }

  /** True if the entry is gone. `shown` is its path for people; `parent` can't be redirected. */
  function* deleteEntry(parent: OpenDirectory, { name, isDirectory }: Name, shown: string): Generator<void, boolean> {
    done += 1
    if (done % entriesPerTurn === 0) yield
    try {
      const directory = isDirectory || !tryUnlink(parent.below(name)) ? openDirectory(parent.below(name)) : 'gone'
      if (directory === 'gone') return true
      // Swapped for something else since it was listed.
      if (directory === undefined) return tryUnlink(parent.below(name)) || keep(shown, 'it keeps changing')
      try {
        if (directory.mount !== parent.mount) return keep(shown, mounted)
        if (!(yield* deleteContents(directory, shown))) return false
      } finally {
        directory.close()
      }
      rmdirSync(parent.below(name))
      return true
    } catch (error) {
      if (isMissing(error)) return true
      return keep(shown, hasCode(error, 'EBUSY') ? mounted : reasonOf(error))
    }
  }

  function* deleteContents(directory: OpenDirectory, shown: string): Generator<void, boolean> {
    const names = yield* directory.names()
    const isAsked = shown !== top && names.some(({ name }) => name === '.git')
    const reason = isAsked ? leave?.(rawBytes(shown)) : undefined
    if (reason !== undefined) return keep(shown, reason)
    let emptied = true
    for (const name of names) {
      const gone = yield* deleteEntry(directory, name, `${shown}/${name.name}`)
      emptied &&= gone
    }
    return emptied
  }

  const parent = openTop(rawBytes(posix.dirname(top)))
  if (parent === undefined) return kept
  try {
    yield* deleteEntry(parent, { name: posix.basename(top), isDirectory: true }, top)
  } finally {
    parent.close()
  }
  return kept
}

/** Names are raw bytes. The kind seen when listing is only a hint. */
type Name = { readonly name: string; readonly isDirectory: boolean }

/** An open directory: operations below it stay in it, even if its path changes. */
type OpenDirectory = {
  readonly below: (name: string) => Buffer
  readonly names: () => Generator<void, Name[]>
  readonly mount: string
  readonly close: () => void
}

const openTop = (path: Buffer): OpenDirectory | undefined => {
  try {
    return isLinux ? openByDescriptor(path, 0) : openByPath(realpathSync.native(path, { encoding: 'buffer' }))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const isLinux = process.platform === 'linux'

/** Undefined if it isn't a directory: a file, a link, a socket. */
const openDirectory = (path: Buffer): OpenDirectory | undefined => {
  try {
    return isLinux ? openByDescriptor(path, constants.O_NOFOLLOW) : openByPath(path)
  } catch (error) {
    if (hasCode(error, 'ENOTDIR') || hasCode(error, 'ELOOP')) return undefined
    throw error
  }
}

/** Linux: opens without reading, which needs no permission. Missing from Node's constants. */
const O_PATH = 0o10000000

/**
 * `/proc/self/fd/<n>` is the open directory itself. Its mount ID is unique while we hold the parent open, even among
 * bind mounts, and the kernel refuses to unlink a mount point.
 */
const openByDescriptor = (path: Buffer, flags: number): OpenDirectory => {
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | flags)
  try {
    const mount = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    if (mount === undefined) throw new Error("the kernel doesn't report which mount a directory is on")
    return { ...directoryAt(Buffer.from(`/proc/self/fd/${fd}`), fstatSync(fd)), mount, close: () => closeSync(fd) }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** macOS has no bind mounts, so the device is enough; Node can't work below an open directory there. */
const openByPath = (path: Buffer): OpenDirectory => {
  const found = lstatSync(path)
  if (!found.isDirectory()) throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
  return { ...directoryAt(path, found), mount: String(found.dev), close: () => undefined }
}

const directoryAt = (path: Buffer, { mode, size }: Stats): Pick<OpenDirectory, 'below' | 'names'> => ({
  below: (name) => Buffer.concat([path, Buffer.from('/'), rawBytes(name)]),
  *names() {
    // We need permission to list and change a directory before we can delete its files.
    if ((mode & 0o700) !== 0o700) chmodSync(path, (mode & 0o777) | 0o700)
    const pieces = listInPieces(path, size)
    let piece = pieces.next()
    for (; piece.done !== true; piece = pieces.next()) yield
    return piece.value.map((found) => ({ name: found.name, isDirectory: found.isDirectory() }))
  },
})

/** False for a directory: EISDIR on Linux, EPERM on macOS. */
const tryUnlink = (path: Buffer): boolean => {
  try {
    unlinkSync(path)
    return true
  } catch (error) {
    if (hasCode(error, 'EISDIR')) return false
    if (hasCode(error, 'EPERM') && lstatSync(path).isDirectory()) return false
    throw error
  }
}

/** Without the path, which may be under `/proc`. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/, \w+ '.*$/s, '') : String(error)
