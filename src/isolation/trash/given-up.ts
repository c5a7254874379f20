import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { unlessMissing } from '../../domain/missing.ts'

/*
 * What nobody wants back is renamed by us and deleted in the background. Its name carries its own inode, so that it is
 * known for what we renamed, without a database: whatever else a person puts there, under any name, is left alone.
 */

/** `<prefix><id>.<inode>`: what to call a directory that is given up. */
export const givenUpName = async (prefix: string, id: string, path: string): Promise<string> =>
  `${prefix}${id}.${(await lstat(path, { bigint: true })).ino}`

/** The very directory that was given up under this name. */
export const isGivenUpDirectory = async (prefix: string, path: string): Promise<boolean> => {
  const name = basename(path)
  const inode = /\.(\d+)$/.exec(name)?.[1]
  if (!name.startsWith(prefix) || inode === undefined) return false
  const found = await unlessMissing(lstat(path, { bigint: true }))
  return found?.isDirectory() === true && String(found.ino) === inode
}
