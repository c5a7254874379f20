import { join } from 'node:path'
import { isAppError } from '../domain/errors.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/*
 * By `coppice-id` in its git directory a repository is recognised after it was moved: one line `<host> <codebase>` per
 * home that has it registered. An agent can write this file, so it is a claim and never a proof.
 */

const file = 'coppice-id'
const maxBytes = 16 * 1024

/** The ids by host; none when there is no such file, or what is there cannot be one. */
export const readRepositoryIds = (commonDir: string): ReadonlyMap<string, string> => {
  const lines = readText(join(commonDir, file)).split('\n')
  const pairs = lines.map((line) => /^([A-Za-z0-9-]{1,64}) ([A-Za-z0-9-]{1,64})$/.exec(line))
  return new Map(pairs.flatMap((match) => (match ? [[match[1] ?? '', match[2] ?? '']] : [])))
}

/** Adds or replaces this host's line, whole or not at all. Its name is on disk when the directory is synced. */
export const writeRepositoryId = (commonDir: string, host: string, id: string): void => {
  const ids = new Map(readRepositoryIds(commonDir)).set(host, id)
  const text = [...ids].map((line) => `${line.join(' ')}\n`).join('')
  // Over whatever is there: a link or a FIFO is replaced, not followed.
  replaceFileSync(join(commonDir, file), text, { sync: true })
}

const readText = (path: string): string => {
  try {
    return readUntrustedTextSync(path, { maxBytes }) ?? ''
  } catch (error) {
    // A FIFO, a link, a file that is too large: nobody of ours wrote that.
    if (isAppError(error)) return ''
    throw error
  }
}
