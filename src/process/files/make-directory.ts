import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { hasCode } from '../../domain/error-code.ts'

/**
 * `mkdir -p` for a path from the user; true if it created anything. One level at a time, because Node's recursive mkdir
 * never returns if the system answers ENOENT, as below /proc.
 */
export const makeDirectorySync = (path: string, mode = 0o700): boolean => {
  const missing: string[] = []
  for (let at = resolve(path); statSync(at, { throwIfNoEntry: false }) === undefined; at = dirname(at)) missing.push(at)
  // Throws if it is a file.
  if (missing.length === 0) return !isDirectory(path) && makeOne(path, mode)
  return missing
    .toReversed()
    .map((at) => makeOne(at, mode))
    .includes(true)
}

const makeOne = (path: string, mode: number): boolean => {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    // Another process just created it.
    if (hasCode(error, 'EEXIST') && isDirectory(path)) return false
    throw error
  }
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
