import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { unlessMissing } from '../../domain/missing.ts'

/*
 * Directories that nobody needs are renamed and deleted in the background. The name contains the inode, so that we
 * recognise what we renamed without a database: anything else that a person puts there, under any name, is left alone.
 */

/** `<prefix><id>.<inode>`: the name for a directory that is given up. */
export const givenUpName = async (prefix: string, id: string, path: string): Promise<string> =>
  `${prefix}${id}.${(await lstat(path, { bigint: true })).ino}`

/** Is it the very directory given up under this name? */
export const isGivenUpDirectory = async (prefix: string, path: string): Promise<boolean> => {
  const name = basename(path)
  const inode = /\.(\d+)$/.exec(name)?.[1]
  if (!name.startsWith(prefix) || inode === undefined) return false
  const found = await unlessMissing(lstat(path, { bigint: true }))
  return found?.isDirectory() === true && String(found.ino) === inode
}
