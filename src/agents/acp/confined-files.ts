import { constants } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import { hasCode } from '../../domain/error-code.ts'
import { isAppError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { belongsToGit, containedPath } from '../contained-path.ts'

/*
 * File access on behalf of an agent, confined to its environment. Containment is checked on the real path, so a symlink
 * that points outside is outside.
 */

/** Larger than any source file; a response is one message, held in memory on both sides. */
const MAX_BYTES = 10 * 1024 * 1024

export type TextRange = { readonly line?: number | null | undefined; readonly limit?: number | null | undefined }

export const readTextInside = async (root: string, path: string, range: TextRange): Promise<string> => {
  const place = await resolveInside(root, path)
  const text = await readUntrustedText(place, { maxBytes: MAX_BYTES }).catch((error: unknown) => {
    throw refused(path, isAppError(error, 'unusable-file') ? "isn't a file of at most 10 MB" : openFailure(error))
  })
  if (text === undefined) throw RequestError.resourceNotFound(path)
  return linesOf(text, range)
}

export const writeTextInside = async (root: string, path: string, content: string): Promise<void> => {
  const place = await resolveInside(root, path)
  if (await belongsToGit(root, place)) throw refused(path, 'belongs to git')
  await mkdir(dirname(place), { recursive: true })
  const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  // No O_TRUNC: if this isn't a regular file, it must stay untouched.
  const file = await openOrRefuse(place, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, path)
  try {
    if (!(await file.stat()).isFile()) throw refused(path, "isn't a file")
    await file.truncate(0)
    await file.writeFile(content)
  } finally {
    await file.close()
  }
}

/** A directory that a command may run in. */
export const directoryInside = async (root: string, path: string): Promise<string> => {
  const place = await resolveInside(root, path)
  const file = await openOrRefuse(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY, path)
  await file.close()
  return place
}

/** The last component of the result is opened with O_NOFOLLOW. */
export const resolveInside = async (root: string, path: string): Promise<string> => {
  if (!isAbsolute(path) || path.includes('\0')) throw refused(path, "isn't an absolute path")
  const real = await containedPath(root, resolve(path))
  if (real === undefined) throw refused(path, 'is outside the worktree')
  return real
}

const openOrRefuse = async (place: string, flags: number, requestedPath: string) => {
  try {
    return await open(place, flags, 0o666)
  } catch (error) {
    if (isMissing(error)) throw RequestError.resourceNotFound(requestedPath)
    if (hasCode(error, 'ELOOP')) throw refused(requestedPath, 'is a dangling symbolic link')
    throw refused(requestedPath, openFailure(error))
  }
}

const openFailure = (error: unknown): string =>
  `can't be opened (${error instanceof Error && 'code' in error ? String(error.code) : 'fault'})`

const refused = (path: string, why: string): RequestError =>
  RequestError.invalidParams(undefined, `${JSON.stringify(path.slice(0, 500))} ${why}`)

const linesOf = (text: string, { line, limit }: TextRange): string => {
  if ((line ?? undefined) === undefined && (limit ?? undefined) === undefined) return text
  const first = Math.max(0, (line ?? 1) - 1)
  const lines = text.split('\n')
  return lines.slice(first, limit === null || limit === undefined ? undefined : first + Math.max(0, limit)).join('\n')
}
