import { join } from 'node:path'
import { maxLineBytes } from '../domain/git-link.ts'
import { isSha, type Sha } from '../domain/names.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'
import { readUntrustedText, readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { maxPackedRefsBytes } from './file-limits.ts'

/**
 * Reads a ref without starting git, for use on every message. Knows only git's ordinary ref files; undefined for
 * anything else (a reftable, a symbolic ref).
 */
export const readRefFile = async (commonDir: string, ref: string): Promise<Sha | undefined> => {
  const loose = looseText(join(commonDir, ref))?.trim()
  if (loose !== undefined) return isSha(loose) ? loose : undefined
  const packed = await packedText(commonDir).catch(() => undefined)
  const line = packed?.split('\n').find((one) => one.endsWith(` ${ref}`))
  const sha = line?.slice(0, line.indexOf(' ')) ?? ''
  return isSha(sha) ? sha : undefined
}

/** Whether git's ordinary ref files prove that there is no such ref. False if they can't, or if there is one. */
export const isAbsentRef = async (commonDir: string, ref: string): Promise<boolean> => {
  try {
    // Git writes `packed-refs` before it deletes the loose file, so look at that one last.
    const others = [join(commonDir, 'reftable'), join(commonDir, ref)]
    if (others.some((path) => lstatIfThere(path) !== undefined)) return false
    const packed = await packedText(commonDir)
    return packed === undefined || !packed.split('\n').some((line) => line.endsWith(` ${ref}`))
  } catch {
    return false
  }
}

/** Synchronous: a line takes microseconds, ten times as long through the thread pool. */
const looseText = (path: string): string | undefined => {
  try {
    return readUntrustedTextSync(path, { maxBytes: maxLineBytes })
  } catch {
    return undefined
  }
}

const packedText = (commonDir: string): Promise<string | undefined> =>
  readUntrustedText(join(commonDir, 'packed-refs'), { maxBytes: maxPackedRefsBytes })
