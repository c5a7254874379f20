import { lstat, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow, toRaw } from '../../../../domain/text/raw-path.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { disableSparse, reapplySparse } from '../../../../git/checkout.ts'
import type { Tree } from '../../../../git/door.ts'
import { skippedFiles } from '../../../../git/hidden.ts'
import type { Setting } from '../../../../git/neutral.ts'
import type { IsolationContext } from '../../../context.ts'
import { parentOf } from './restore-files.ts'

/*
 * A sparse checkout, or files with `skip-worktree` set, are restored with the index and git's record. What remains is
 * to delete the files that weren't there.
 */

/** Call first: the main working tree's patterns must not decide which files are written. */
export const makeFull = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  { contents }: RestorePoint,
  settings: readonly Setting[],
): Promise<void> => {
  if (contents.skippedButThere !== undefined && (await isSparse(tree))) {
    await disableSparse(context.git, tree, { settings })
  }
}

/** Once the index is back. */
export const takeSkippedAway = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  { contents: { skippedButThere } }: RestorePoint,
): Promise<void> => {
  // Points of earlier versions don't say which existed.
  if (skippedButThere === undefined) {
    if (await isSparse(tree)) await reapplySparse(context.git, tree)
    return
  }
  const stay = new Set(skippedButThere)
  const isReal = realDirectories(tree.path)
  for (const { bytes } of await skippedFiles(context.git, tree)) {
    const path = toRaw(bytes)
    if (stay.has(path) || !(await isReal(parentOf(path)))) continue
    const found = await unlessMissing(lstat(bytesBelow(tree.path, path)))
    if (found?.isFile() !== true && found?.isSymbolicLink() !== true) continue
    await rm(bytesBelow(tree.path, path))
    await removeEmptyParents(tree.path, path)
  }
}

const isSparse = async (tree: Tree): Promise<boolean> =>
  (await unlessMissing(lstat(join(tree.gitDir, 'info/sparse-checkout')))) !== undefined

/** Never delete through a restored link in place of a directory: it may lead anywhere. */
const realDirectories = (root: string): ((path: string) => Promise<boolean>) => {
  const known = new Map<string, boolean>([['', true]])
  const isReal = async (path: string): Promise<boolean> => {
    const seen = known.get(path)
    if (seen !== undefined) return seen
    const real =
      (await isReal(parentOf(path))) && (await unlessMissing(lstat(bytesBelow(root, path))))?.isDirectory() === true
    known.set(path, real)
    return real
  }
  return isReal
}

const removeEmptyParents = async (root: string, path: string): Promise<void> => {
  for (let parent = parentOf(path); parent !== ''; parent = parentOf(parent)) {
    try {
      await rmdir(bytesBelow(root, parent))
    } catch {
      // Not empty: neither are its parents.
      return
    }
  }
}
