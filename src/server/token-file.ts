import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'

export type Token = {
  readonly token: string
  readonly file: string
  /** Created just now, so show it once. */
  readonly created: boolean
  /** The file was readable by others until now. */
  readonly tightened: boolean
}

/** This home's token, created if missing. Two processes that start together get the same one. */
export const ensureToken = (home: string): Token => {
  const file = tokenFile(home)
  const kept = readToken(home)
  if (kept !== undefined) return { ...kept, created: false }
  // A link fails if the name exists: no reader ever sees a partial file, and the first process wins.
  const temporary = `${file}.${randomBytes(8).toString('hex')}`
  let created = true
  try {
    writeFileSync(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true })
    linkSync(temporary, file)
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw unusable(file, cause)
    created = false
  } finally {
    rmSync(temporary, { force: true })
  }
  const token = readToken(home)
  if (token === undefined) throw damaged(file, 'vanished while it was read')
  return { ...token, created }
}

/** undefined if missing. Never creates one: a client needs the server's. */
export const readToken = (home: string): Omit<Token, 'created'> | undefined => {
  const file = tokenFile(home)
  const descriptor = open(file)
  if (descriptor === undefined) return undefined
  try {
    const { mode, uid, size } = fstatSync(descriptor)
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw damaged(file, 'is not a plain file')
    if (size > 1024) throw damaged(file, 'is too large')
    const own = process.getuid?.()
    if (own !== undefined && uid !== own && own !== 0) throw damaged(file, 'belongs to another user')
    const tightened = (mode & 0o077) !== 0
    if (tightened) fchmodSync(descriptor, 0o600)
    const token = readFileSync(descriptor, 'utf8').trim()
    if (!/^[0-9a-f]{64}$/.test(token)) throw damaged(file, "doesn't contain a token")
    return { token, file, tightened }
  } finally {
    closeSync(descriptor)
  }
}

export const tokenFile = (home: string): string => join(home, 'token')

/** Doesn't follow a link (we'd change the mode of somebody else's file) or wait for a pipe's writer. */
const open = (file: string): number | undefined => {
  try {
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined
    if (codeOf(cause) === 'ELOOP') throw damaged(file, 'is a link')
    throw unusable(file, cause)
  }
}

const damaged = (file: string, what: string): AppError =>
  new AppError('config-invalid', `the token file ${file} ${what}`, {
    remedy: 'delete it; the server creates a new one when it starts',
  })

const unusable = (file: string, cause: unknown): AppError =>
  new AppError('config-invalid', `can't use the token file ${file}: ${String(codeOf(cause) ?? cause)}`, {
    cause,
    remedy: 'check that you own it and that its mode is 0600',
  })

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
