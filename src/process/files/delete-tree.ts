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
import { rawBytes, shownPath, toRaw } from '../../domain/raw-path.ts'
import { trimEndOf } from '../../domain/trim-end.ts'
import { shellWord } from '../../domain/shell-word.ts'
import { listInPieces } from './list-directory.ts'
import { remedy, shell } from '../../domain/remedy.ts'

/**
 * The only function that deletes a directory with what is in it. It never leaves the file system it starts on and never
 * follows a link: not onto a bind mount of the same device, not onto something mounted while it deletes, not through a
 * directory that somebody swaps for a link. What it must not cross stays, everything else goes.
 */
export const deleteTree = async (path: string | Buffer, options: DeleteOptions = {}): Promise<void> => {
  const steps = deletion(path, options)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return refuseLeft(path, step.value)
    await nextTurn()
  }
}

/** The same without giving way to anything else: for a process that has nothing else to do. */
export const deleteTreeSync = (path: string | Buffer, options: DeleteOptions = {}): void => {
  const steps = deletion(path, options)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return refuseLeft(path, step.value)
  }
}

export type DeleteOptions = {
  /** Asked about every directory below the top that has an entry `.git`. A reason to leave it with all that is in it. */
  readonly leave?: (directory: Buffer) => string | undefined
}

type Left = { readonly path: string; readonly reason: string }

const refuseLeft = (path: string | Buffer, left: readonly Left[]): void => {
  if (left.length === 0) return
  const named = left.slice(0, 3).map((one) => `${one.path} (${one.reason})`)
  const mountedAt = left.find(({ reason }) => reason === mounted)
  const more = left.length > 3 ? ` and ${left.length - 3} more` : ''
  throw new AppError('path-taken', `couldn't delete all of ${path.toString()}: ${named.join(', ')}${more} was left`, {
    remedy: mountedAt === undefined ? 'check what is there' : remedy`${shell(`umount ${shellWord(mountedAt.path)}`)}`,
  })
}

const mounted = 'something is mounted there'

/** Gives way every so many entries. */
const entriesPerTurn = 256

function* deletion(path: string | Buffer, { leave }: DeleteOptions): Generator<void, Left[]> {
  const whole = trimEndOf(toRaw(Buffer.from(path)), '/')
  const left: Left[] = []
  let done = 0

  const keep = (shown: string, reason: string): false => {
    left.push({ path: shownPath(shown), reason })
    return false
  }

  /** True when the entry is gone. `shown` is where it is for people, `parent` the way to it that nobody can redirect. */
  function* entry(parent: Place, { name, isDirectory }: Name, shown: string): Generator<void, boolean> {
    done += 1
    if (done % entriesPerTurn === 0) yield
    try {
      const place = isDirectory || !isUnlinked(parent.below(name)) ? openDirectory(parent.below(name)) : 'gone'
      if (place === 'gone') return true
      // Swapped for something else since it was listed.
      if (place === undefined) return isUnlinked(parent.below(name)) || keep(shown, 'it keeps changing')
      try {
        if (place.mount !== parent.mount) return keep(shown, mounted)
        if (!(yield* contents(place, shown))) return false
      } finally {
        place.close()
      }
      rmdirSync(parent.below(name))
      return true
    } catch (error) {
      if (isMissing(error)) return true
      return keep(shown, hasCode(error, 'EBUSY') ? mounted : reasonOf(error))
    }
  }

  function* contents(place: Place, shown: string): Generator<void, boolean> {
    const names = yield* place.names()
    const isAsked = shown !== whole && names.some(({ name }) => name === '.git')
    const reason = isAsked ? leave?.(rawBytes(shown)) : undefined
    if (reason !== undefined) return keep(shown, reason)
    let emptied = true
    for (const name of names) {
      const gone = yield* entry(place, name, `${shown}/${name.name}`)
      emptied &&= gone
    }
    return emptied
  }

  const above = openTop(rawBytes(posix.dirname(whole)))
  if (above === undefined) return left
  try {
    yield* entry(above, { name: posix.basename(whole), isDirectory: true }, whole)
  } finally {
    above.close()
  }
  return left
}

/** A name is bytes: raw. What kind it was when it was listed is only a hint. */
type Name = { readonly name: string; readonly isDirectory: boolean }

/** An open directory: what is done below it is done there, whatever happens to the names on the way to it. */
type Place = {
  readonly below: (name: string) => Buffer
  readonly names: () => Generator<void, Name[]>
  /** Which mount it is on. */
  readonly mount: string
  readonly close: () => void
}

const openTop = (path: Buffer): Place | undefined => {
  try {
    return isLinux ? descriptor(path, 0) : byPath(realpathSync.native(path, { encoding: 'buffer' }))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const isLinux = process.platform === 'linux'

/** Undefined for whatever is not a directory: a file, a link, a socket. */
const openDirectory = (path: Buffer): Place | undefined => {
  try {
    return isLinux ? descriptor(path, constants.O_NOFOLLOW) : byPath(path)
  } catch (error) {
    if (hasCode(error, 'ENOTDIR') || hasCode(error, 'ELOOP')) return undefined
    throw error
  }
}

/** Linux: opens what is named without reading it, which needs no permission. Node has no name for it. */
const O_PATH = 0o10000000

/**
 * `/proc/self/fd/<n>` leads to the open directory itself. Its mount has a number that no other mount has while we hold
 * the directory above open, bind mounts included; and the kernel refuses to unlink a mount point.
 */
const descriptor = (path: Buffer, flags: number): Place => {
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | flags)
  try {
    const mount = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    if (mount === undefined) throw new Error('the kernel does not say which mount a directory is on')
    return { ...placeAt(Buffer.from(`/proc/self/fd/${fd}`), fstatSync(fd)), mount, close: () => closeSync(fd) }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** macOS has no bind mounts, so the device tells; and from Node there is no way to work below an open directory. */
const byPath = (path: Buffer): Place => {
  const found = lstatSync(path)
  if (!found.isDirectory()) throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
  return { ...placeAt(path, found), mount: String(found.dev), close: () => undefined }
}

const placeAt = (path: Buffer, { mode, size }: Stats): Pick<Place, 'below' | 'names'> => ({
  below: (name) => Buffer.concat([path, Buffer.from('/'), rawBytes(name)]),
  *names() {
    // One without the right to list or change it would keep its files: it goes anyway, so the right is taken first.
    if ((mode & 0o700) !== 0o700) chmodSync(path, (mode & 0o777) | 0o700)
    const pieces = listInPieces(path, size)
    let piece = pieces.next()
    for (; piece.done !== true; piece = pieces.next()) yield
    return piece.value.map((found) => ({ name: found.name, isDirectory: found.isDirectory() }))
  },
})

/** False for a directory: Linux says EISDIR, macOS EPERM. */
const isUnlinked = (path: Buffer): boolean => {
  try {
    unlinkSync(path)
    return true
  } catch (error) {
    if (hasCode(error, 'EISDIR')) return false
    if (hasCode(error, 'EPERM') && lstatSync(path).isDirectory()) return false
    throw error
  }
}

/** Without the path, which may be one of `/proc`. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/, \w+ '.*$/s, '') : String(error)
