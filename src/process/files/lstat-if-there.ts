import { lstatSync, type PathLike, type Stats } from 'node:fs'
import { unlessMissingSync } from '../../domain/missing.ts'

/**
 * Undefined if missing. Many of the files asked for don't exist, and making an Error for each costs ten times as much as
 * asking. (Node makes none for ENOENT, but one for ENOTDIR.)
 */
export const lstatIfThere = (path: PathLike): Stats | undefined =>
  unlessMissingSync(() => lstatSync(path, { throwIfNoEntry: false }))
