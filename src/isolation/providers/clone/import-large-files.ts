import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { unlessMissing } from '../../../domain/missing.ts'
import type { Repo, Tree } from '../../../domain/tree.ts'
import { copyUntrusted, openUntrusted } from '../../../process/files/read-untrusted.ts'
import { syncPath } from '../../../process/files/sync-path.ts'

/**
 * The content of large files committed in a clone is in its own Git LFS store; the repository only gets pointers.
 * Content whose name isn't its hash is skipped: the repository would serve it to others.
 */
export const importLargeFiles = async (from: Tree, to: Repo): Promise<void> => {
  const [own, theirs] = [from, to].map(({ commonDir }) => join(commonDir, 'lfs/objects'))
  if (own === undefined || theirs === undefined) return
  for (const name of (await unlessMissing(readdir(own, { recursive: true }))) ?? []) {
    const oid = /^([0-9a-f]{2})\/([0-9a-f]{2})\/(\1\2[0-9a-f]{60})$/.exec(name)?.[3]
    if (oid === undefined || (await unlessMissing(lstat(join(theirs, name)))) !== undefined) continue
    await bringFile(join(own, name), join(theirs, name), oid)
  }
}

const bringFile = async (from: string, to: string, oid: string): Promise<void> => {
  const temporary = `${to}.${process.pid}.tmp`
  await mkdir(dirname(to), { recursive: true })
  await rm(temporary, { force: true })
  try {
    if (!(await copyUntrusted(from, temporary)) || (await hashOf(temporary)) !== oid) return
    await syncPath(temporary)
    await rename(temporary, to)
    await syncPath(dirname(to))
  } finally {
    await rm(temporary, { force: true })
  }
}

const hashOf = async (path: string): Promise<string | undefined> => {
  const file = await openUntrusted(path)
  if (file === undefined) return undefined
  const hash = createHash('sha256')
  for await (const piece of file.createReadStream()) hash.update(piece as Buffer)
  return hash.digest('hex')
}
