import { constants } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { syncPath } from '../process/files/sync-path.ts'

/** A rename survives a power cut only after its directory is synced. */
export const syncDirectory = (path: string): Promise<void> => syncPath(path)

/** Writes a file so that its content survives a power cut. Its name does only after the directory is synced. */
export const writeDurably = async (path: string, bytes: string | Uint8Array, mode = 0o600): Promise<void> => {
  const handle = await open(path, overwrite, mode)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Doesn't follow a link or wait for a FIFO's reader. */
const overwrite =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK

export const makePrivateDirectory = async (path: string): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
}
