import { join } from 'node:path'
import { isAppError } from '../domain/errors.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/*
 * `coppice-id` in its git directory identifies a repository after a move: one line `<host> <codebase>` per home that
 * has it registered. An agent can write this file, so it's a claim, not proof.
 */

const file = 'coppice-id'
const maxBytes = 16 * 1024

/** The ids by host; empty when the file is missing or invalid. */
export const readRepositoryIds = (commonDir: string): ReadonlyMap<string, string> => {
  const lines = readText(join(commonDir, file)).split('\n')
  const pairs = lines.map((line) => /^([A-Za-z0-9-]{1,64}) ([A-Za-z0-9-]{1,64})$/.exec(line))
  return new Map(pairs.flatMap((match) => (match ? [[match[1] ?? '', match[2] ?? '']] : [])))
}

/** Adds or replaces this host's line atomically. Durable once the directory is synced. */
export const writeRepositoryId = (commonDir: string, host: string, id: string): void => {
  const ids = new Map(readRepositoryIds(commonDir)).set(host, id)
  const text = [...ids].map((line) => `${line.join(' ')}\n`).join('')
  // A link or FIFO is replaced, not followed.
  replaceFileSync(join(commonDir, file), text, { sync: true })
}

const readText = (path: string): string => {
  try {
    return readUntrustedTextSync(path, { maxBytes }) ?? ''
  } catch (error) {
    // A FIFO, a link, an oversized file: not written by us.
    if (isAppError(error)) return ''
    throw error
  }
}
