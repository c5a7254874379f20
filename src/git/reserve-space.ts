import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { lstat, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { unlessMissing } from '../domain/missing.ts'
import { identityWord } from '../domain/process-identity.ts'
import { selfIdentity } from '../process/identity.ts'
import type { Git, Repo } from './door.ts'
import { temporaryDirectory } from './private-index.ts'

/**
 * Takes up space in the home while git writes files. If the disk gets full, that is freed first, so that there is room
 * to undo the creation: for a private index and for the database. Throws if there isn't even that much. Random bytes:
 * some file systems compress zeros to nothing.
 */
export const reserveSpace = async (git: Git, { commonDir }: Repo): Promise<Disposable> => {
  const directory = temporaryDirectory(git)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, `${identityWord(selfIdentity())}+space-${counter++}`)
  const free = (): void => rmSync(path, { force: true })
  try {
    await writeFile(path, Buffer.alloc(await sizeFor(commonDir), incompressible()), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) free()
    throw error
  }
  return { [Symbol.dispose]: free }
}

let counter = 0

const megabyte = 1024 ** 2

let block: Buffer | undefined
/** Made once: it takes longer than writing it. */
const incompressible = (): Buffer => (block ??= randomBytes(megabyte))

/** An index takes about 100 bytes per file; a new one is about as large as the repository's, which anyone can write. */
const sizeFor = async (commonDir: string): Promise<number> => {
  const index = await unlessMissing(lstat(join(commonDir, 'index')))
  return megabyte + (index?.isFile() === true ? Math.min(index.size, 15 * megabyte) : 3 * megabyte)
}
