import type { GitRequest } from './request.ts'

/*
 * Every git is ended when its time is over: it may wait for something that nobody foresaw, and somebody may be waiting
 * for the repository's lock meanwhile. The limits are for cold disks and large repositories, not for the usual case.
 */

/** Reads or writes a few refs or objects: milliseconds on a warm disk. */
const lookups: ReadonlySet<string> = new Set([
  'config',
  'for-each-ref',
  'ls-tree',
  'rev-parse',
  'set upstream',
  'drop upstream',
  'symbolic-ref',
  'update-ref',
  'version',
])

const lookupMs = 60_000
/** Reads every file of a tree, writes them, or walks all of history. */
const localMs = 5 * 60_000
const networkMs = 15 * 60_000

export const timeLimitOf = ({ operation, network, timeoutMs }: GitRequest): number => {
  if (timeoutMs !== undefined) return timeoutMs
  if (network === true) return networkMs
  return lookups.has(operation) ? lookupMs : localMs
}
