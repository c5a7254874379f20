import { mkdir, open } from 'node:fs/promises'

/** A name is on disk only when its directory is: a power cut forgets a rename that was not synced. */
export const syncDirectory = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Writes a file so that it survives a power cut once this resolves (its name, once the directory is synced). */
export const writeDurably = async (path: string, bytes: string | Uint8Array, mode = 0o600): Promise<void> => {
  const handle = await open(path, 'w', mode)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export const makePrivateDirectory = async (path: string): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
}
