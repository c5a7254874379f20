import { closeSync, constants, fstatSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { notAFile } from './read-untrusted.ts'

/*
 * Brings a file or a directory (its names) to the disk. Never waits for anything but the disk: a FIFO under that name is
 * an error. Links are followed, since syncing what is behind one does no harm.
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
