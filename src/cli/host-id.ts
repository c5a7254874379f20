import { linkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { makeDirectorySync } from '../process/files/make-directory.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'

/** Creates the home, private from the start, and returns its real path: records hold real paths. */
export const prepareHome = (home: string, onMade: (home: string) => void = () => undefined): string => {
  try {
    const made = makeDirectorySync(home)
    const real = realpathSync(home)
    if (made) onMade(real)
    return real
  } catch (cause) {
    throw new AppError('config-invalid', `can't use the home directory ${home}: ${reason(cause)}`, {
      cause,
      remedy: 'choose another one with --home or COPPICE_HOME',
    })
  }
}

/** This host's ID, kept in the home. Two processes starting together for the first time agree on one. */
export const hostId = (home: string, random: () => string): string => {
  const path = join(home, 'host')
  const kept = read(path)
  if (kept !== undefined) return kept
  // With a link, which fails if the name exists: no reader sees half a file, and the first one wins.
  const own = `${path}.${random()}`
  try {
    writeFileSync(own, `${random()}\n`, { mode: 0o600, flag: 'wx' })
    linkSync(own, path)
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause
  } finally {
    rmSync(own, { force: true })
  }
  const id = read(path)
  if (id === undefined) {
    throw new AppError('config-invalid', `${path} is empty or damaged`, {
      remedy: "restore it from a backup; with a new ID, all worktrees would look like another host's",
    })
  }
  return id
}

const read = (path: string): string | undefined => {
  const text = readUntrustedTextSync(path)?.trim() ?? ''
  return /^[A-Za-z0-9-]{8,64}$/.test(text) ? text : undefined
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
