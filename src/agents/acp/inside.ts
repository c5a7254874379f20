import { constants } from 'node:fs'
import { mkdir, open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import { hasCode } from '../../domain/error-code.ts'
import { isAppError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'

/*
 * What an agent asks us to do with files, done inside its environment or not at all. Containment is by real path: a
 * symbolic link that leads out is out, however its path reads.
 */

/** Larger than any source file; an answer is one message, held in memory on both sides. */
const MOST_BYTES = 10 * 1024 * 1024

export type TextRange = { readonly line?: number | null | undefined; readonly limit?: number | null | undefined }

export const readTextInside = async (root: string, path: string, range: TextRange): Promise<string> => {
  const place = await placeInside(root, path)
  const text = await readUntrustedText(place, { maxBytes: MOST_BYTES }).catch((error: unknown) => {
    throw refused(path, isAppError(error, 'unusable-file') ? 'is not a file of at most 10 MB' : cannotBeOpened(error))
  })
  if (text === undefined) throw RequestError.resourceNotFound(path)
  return linesOf(text, range)
}

export const writeTextInside = async (root: string, path: string, content: string): Promise<void> => {
  const place = await placeInside(root, path)
  const parts = relative(await realpath(root), place).split(sep)
  if (parts.some(isGitName)) throw refused(path, 'belongs to git')
  await mkdir(dirname(place), { recursive: true })
  const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  // Not truncated by opening: what turns out not to be a file stays as it is.
  const file = await opened(place, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, path)
  try {
    if (!(await file.stat()).isFile()) throw refused(path, 'is not a file')
    await file.truncate(0)
    await file.writeFile(content)
  } finally {
    await file.close()
  }
}

/** A directory in which something may be run. */
export const directoryInside = async (root: string, path: string): Promise<string> => {
  const place = await placeInside(root, path)
  const file = await opened(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY, path)
  await file.close()
  return place
}

/**
 * The real path, which need not exist: of the deepest directory that does, with the rest of the name after it. Nothing
 * of that rest exists, so no link can be among it; the last name of all is opened without following one.
 */
export const placeInside = async (root: string, path: string): Promise<string> => {
  if (!isAbsolute(path) || path.includes('\0')) throw refused(path, 'is not an absolute path')
  const real = await realPathOf(resolve(path))
  const way = relative(await realpath(root), real)
  if (way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way)) throw refused(path, 'is outside the worktree')
  return real
}

const realPathOf = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    if (!isMissing(error) || dirname(path) === path) throw error
    return join(await realPathOf(dirname(path)), basename(path))
  }
}

/** `.GIT` is `.git` on a Mac, and so is one with characters in it that its file system leaves out. */
const isGitName = (name: string): boolean =>
  name.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').toLowerCase() === '.git'

const opened = async (place: string, flags: number, asked: string) => {
  try {
    return await open(place, flags, 0o666)
  } catch (error) {
    if (isMissing(error)) throw RequestError.resourceNotFound(asked)
    if (hasCode(error, 'ELOOP')) throw refused(asked, 'is a dangling symbolic link')
    throw refused(asked, cannotBeOpened(error))
  }
}

const cannotBeOpened = (error: unknown): string =>
  `can't be opened (${error instanceof Error && 'code' in error ? String(error.code) : 'fault'})`

const refused = (path: string, why: string): RequestError =>
  RequestError.invalidParams(undefined, `${JSON.stringify(path.slice(0, 500))} ${why}`)

const linesOf = (text: string, { line, limit }: TextRange): string => {
  if ((line ?? undefined) === undefined && (limit ?? undefined) === undefined) return text
  const first = Math.max(0, (line ?? 1) - 1)
  const lines = text.split('\n')
  return lines.slice(first, limit === null || limit === undefined ? undefined : first + Math.max(0, limit)).join('\n')
}
