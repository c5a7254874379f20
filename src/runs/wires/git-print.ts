import { readlinkSync, type Stats, statSync } from 'node:fs'
import { toAppError } from '../../domain/errors.ts'
import { unlessMissingSync } from '../../domain/missing.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { readUntrustedSync } from '../../process/files/read-untrusted.ts'
import type { Budget } from './git-budget.ts'
import { hashOf } from './git-config-file.ts'

/** A fingerprint that changes with the file. Undefined if missing. */
export type Printer = {
  /** For a link, its target's name: that is what was written. */
  readonly file: (path: string) => string | undefined
  /** The content of a link's target; undefined if not a link. */
  readonly target: (path: string) => string | undefined
}

/** Hooks are scripts. Larger files are compared by the kernel's stamps, which are hard to fake. */
const MOST_HASHED = 1_000_000

export const createPrinter = (budget: Budget): Printer => {
  const seen = new Map<string, Stats | undefined>()
  const lstat = (path: string): Stats | undefined => {
    if (!seen.has(path)) seen.set(path, lstatIfThere(path))
    return seen.get(path)
  }
  const content = (path: string, { size, mode, mtimeMs, ctimeMs }: Stats, followLink: boolean): string => {
    if (size > Math.min(MOST_HASHED, budget.bytesLeft())) return `${size} ${mtimeMs} ${ctimeMs}`
    budget.takeBytes(size)
    return `${mode & 0o111} ${hashOf(readUntrustedSync(path, { maxBytes: MOST_HASHED, followLink }) ?? '')}`
  }
  return {
    file: (path) => {
      const stat = lstat(path)
      if (stat === undefined) return undefined
      if (stat.isSymbolicLink()) return `link ${readlinkSync(path)}`
      return stat.isFile() ? content(path, stat, false) : 'no file'
    },
    target: (path) => {
      if (lstat(path)?.isSymbolicLink() !== true) return undefined
      try {
        const stat = unlessMissingSync(() => statSync(path))
        return stat?.isFile() === true ? content(path, stat, true) : undefined
      } catch (error) {
        return `couldn't be read: ${toAppError(error).message}`
      }
    },
  }
}
