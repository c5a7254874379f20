import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../domain/errors.ts'
import { fleetHome } from './paths.ts'

/** A little below the kernel's limit for the path of a socket. */
const MOST_BYTES = 100

/**
 * In the home, which is private. If that path is too long for a socket, in a private directory below /tmp. Whoever owns
 * that directory controls our terminals, so it must be ours.
 */
export const tmuxSocket = (home: string): string => {
  const own = join(fleetHome(home), 'tmux')
  if (Buffer.byteLength(own) <= MOST_BYTES) return own
  const hash = createHash('sha256').update(home).digest('hex').slice(0, 16)
  const directory = `/tmp/coppice-${process.getuid?.() ?? 0}-${hash}`
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const found = lstatSync(directory)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new AppError('unusable-file', `${directory} isn't a private directory of this user`, {
      remedy: 'remove it, or use a shorter COPPICE_HOME',
    })
  }
  return join(directory, 'tmux')
}
