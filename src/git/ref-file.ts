import { join } from 'node:path'
import { maxLineBytes } from '../domain/git-link.ts'
import { isSha, type Sha } from '../domain/names.ts'
import { readUntrustedText } from '../process/files/read-untrusted.ts'
import { maxPackedRefsBytes } from './file-limits.ts'

/**
 * Reads a ref without starting git, for use on every message. Knows only git's ordinary ref files; undefined for
 * anything else (a reftable, a symbolic ref).
 */
export const readRefFile = async (commonDir: string, ref: string): Promise<Sha | undefined> => {
  const loose = (await textOf(join(commonDir, ref), maxLineBytes))?.trim()
  if (loose !== undefined) return isSha(loose) ? loose : undefined
  const packed = await textOf(join(commonDir, 'packed-refs'), maxPackedRefsBytes)
  const line = packed?.split('\n').find((one) => one.endsWith(` ${ref}`))
  const sha = line?.slice(0, line.indexOf(' ')) ?? ''
  return isSha(sha) ? sha : undefined
}

const textOf = (path: string, maxBytes: number): Promise<string | undefined> =>
  readUntrustedText(path, { maxBytes }).catch(() => undefined)
