import { join } from 'node:path'
import { maxLineBytes } from '../domain/git-link.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'

/**
 * What a symbolic ref points to, by its file: symbolic refs are never packed, and this saves a process. Undefined if it
 * is missing, isn't symbolic or can't be read, and if refs are stored in another way.
 */
export const readSymbolicRefFile = (commonDir: string, ref: string): string | undefined => {
  try {
    const text = readUntrustedTextSync(join(commonDir, ref), { maxBytes: maxLineBytes })?.trim()
    return text?.startsWith('ref: refs/') === true ? text.slice('ref: '.length) : undefined
  } catch {
    return undefined
  }
}
