import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { isMissing } from '../domain/missing.ts'

/*
 * By `coppice-id` in its git directory a repository is recognised after it was moved: one line `<host> <codebase>` per
 * home that has it registered. An agent can write this file, so it is a claim and never a proof.
 */

const file = 'coppice-id'
const mostBytes = 16 * 1024

/** The ids by host; none when there is no such file, or what is there cannot be one. */
export const readRepositoryIds = (commonDir: string): ReadonlyMap<string, string> => {
  const text = readCapped(join(commonDir, file)) ?? ''
  const lines = text.split('\n').map((line) => /^([A-Za-z0-9-]{1,64}) ([A-Za-z0-9-]{1,64})$/.exec(line))
  return new Map(lines.flatMap((match) => (match ? [[match[1] ?? '', match[2] ?? '']] : [])))
}

/** Adds or replaces this host's line. On disk, whole or not at all, before this returns. */
export const writeRepositoryId = (commonDir: string, host: string, id: string): void => {
  const ids = new Map(readRepositoryIds(commonDir)).set(host, id)
  const temporary = join(commonDir, `${file}.${process.pid}.tmp`)
  rmSync(temporary, { force: true })
  const handle = openSync(temporary, 'wx', 0o644)
  try {
    writeSync(handle, [...ids].map((line) => `${line.join(' ')}\n`).join(''))
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  try {
    // Over whatever is there: a link or a FIFO is replaced, not followed.
    renameSync(temporary, join(commonDir, file))
    syncDirectory(commonDir)
  } finally {
    rmSync(temporary, { force: true })
  }
}

const syncDirectory = (path: string): void => {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Never blocks and follows no link: whatever is not a small regular file counts as absent. */
const readCapped = (path: string): string | undefined => {
  let handle: number
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (isMissing(error) || ['ELOOP', 'ENXIO', 'EACCES'].some((code) => hasCode(error, code))) return undefined
    throw error
  }
  try {
    const { size } = fstatSync(handle)
    if (!fstatSync(handle).isFile() || size > mostBytes) return undefined
    const bytes = Buffer.alloc(size)
    return bytes.toString('utf8', 0, readSync(handle, bytes, 0, size, 0))
  } finally {
    closeSync(handle)
  }
}
