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
  /** Made just now: the time to show it once. */
  readonly created: boolean
  /** Others could read the file until now. */
  readonly tightened: boolean
}

/** The token of this home, made when there is none. Two processes that start together get the same one. */
export const ensureToken = (home: string): Token => {
  const file = tokenFile(home)
  const kept = readToken(home)
  if (kept !== undefined) return { ...kept, created: false }
  // By a link, which fails when the name is there: no reader ever sees half a file, and the first one wins.
  const own = `${file}.${randomBytes(8).toString('hex')}`
  let created = true
  try {
    writeFileSync(own, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true })
    linkSync(own, file)
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cannot(file, cause)
    created = false
  } finally {
    rmSync(own, { force: true })
  }
  const token = readToken(home)
  if (token === undefined) throw damaged(file, 'vanished while it was read')
  return { ...token, created }
}

/** undefined when there is none yet. Never makes one: whoever only wants to speak to a server needs the server's. */
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

/** Not through a link (somebody else's file would get our mode), and never waiting for a pipe's other end. */
const open = (file: string): number | undefined => {
  try {
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined
    if (codeOf(cause) === 'ELOOP') throw damaged(file, 'is a link')
    throw cannot(file, cause)
  }
}

const damaged = (file: string, what: string): AppError =>
  new AppError('config-invalid', `the token file ${file} ${what}`, {
    remedy: 'delete it; the server creates a new one when it starts',
  })

const cannot = (file: string, cause: unknown): AppError =>
  new AppError('config-invalid', `can't use the token file ${file}: ${String(codeOf(cause) ?? cause)}`, {
    cause,
    remedy: 'check that you own it and that its mode is 0600',
  })

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
