import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { liveness } from '../process/identity.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/** Where this home's server listens, for its clients. */
export type ServerRecord = { readonly url: string; readonly process: ProcessIdentity; readonly startedAt: number }

export const writeServerRecord = (home: string, record: ServerRecord): void =>
  replaceFileSync(recordFile(home), `${JSON.stringify(record)}\n`, { mode: 0o600 })

export const removeServerRecord = (home: string): void => rmSync(recordFile(home), { force: true })

/** The record of a running server; undefined if a crash left it behind. */
export const runningServer = (home: string): ServerRecord | undefined => {
  try {
    const value: unknown = JSON.parse(readUntrustedTextSync(recordFile(home)) ?? '')
    return isRecord(value) && liveness(value.process) === 'alive' ? value : undefined
  } catch {
    return undefined
  }
}

const recordFile = (home: string): string => join(home, 'server.json')

const isRecord = (value: unknown): value is ServerRecord => {
  if (typeof value !== 'object' || value === null) return false
  const { url, process, startedAt } = value as Record<string, unknown>
  if (typeof url !== 'string' || typeof startedAt !== 'number' || typeof process !== 'object') return false
  const { pid, startTime } = (process ?? {}) as Record<string, unknown>
  return typeof pid === 'number' && typeof startTime === 'string'
}
