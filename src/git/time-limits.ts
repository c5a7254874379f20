import type { GitRequest } from './request.ts'

/*
 * Every git process has a time limit: it may block on something unforeseen while others wait for the repository's lock.
 * The limits allow for cold disks and large repositories.
 */

/** Read or write a few refs or objects: milliseconds on a warm disk. */
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
/** Reads or writes every file of a tree, or walks all of history. */
const localMs = 5 * 60_000
const networkMs = 15 * 60_000

export const timeLimitOf = ({ operation, network, timeoutMs }: GitRequest): number => {
  if (timeoutMs !== undefined) return timeoutMs
  if (network !== undefined) return networkMs
  return lookups.has(operation) ? lookupMs : localMs
}
