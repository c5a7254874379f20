import { closeSync, constants, fstatSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { notAFile } from './read-untrusted.ts'

/*
 * Fsyncs a file or directory. Blocks only on the disk: a FIFO is an error. Follows links, since syncing their target is
 * harmless.
 */

const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

export const syncPath = async (path: string | Buffer): Promise<void> => {
  await using file = await open(path, flags)
  const stat = await file.stat()
  if (!stat.isFile() && !stat.isDirectory()) throw notAFile(path, stat)
  await file.sync()
}

export const syncPathSync = (path: string): void => {
  const file = openSync(path, flags)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile() && !stat.isDirectory()) throw notAFile(path, stat)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
