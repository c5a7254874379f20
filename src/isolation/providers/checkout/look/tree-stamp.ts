import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { bytesBelow } from '../../../../domain/text/raw-path.ts'
import { unlessMissing, unlessMissingSync } from '../../../../domain/missing.ts'
import type { Tree } from '../../../../domain/tree.ts'
import { listDirectory } from '../../../../process/files/list-directory.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'
import { recordStamp } from '../restore-point/record-files.ts'

/** `withIndex`: include the index. Not if there was none: saving a tree creates one. */
export type TreeStamp = { readonly value: string; readonly withIndex: boolean }

/**
 * Changes with every write below the tree and every commit, ref and operation in it, but not when its directory is
 * renamed. Doesn't know what was written at creation or what is ignored, so it also works for half a checkout.
 */
export const treeStamp = async (tree: Tree, withIndex = indexStamp(tree) !== undefined): Promise<TreeStamp> => {
  const hash = createHash('sha256').update((await unlessMissing(recordStamp(tree.gitDir))) ?? '-')
  if (withIndex) hash.update(indexStamp(tree) ?? '-')
  const slice = createTimeSlice()
  const visit = async (path: string): Promise<void> => {
    if (slice.isOver()) await slice.next()
    const place = path === '' ? Buffer.from(tree.path) : bytesBelow(tree.path, path)
    const at = unlessMissingSync(() => lstatSync(place, { bigint: true }))
    // A rename changes only the directory's own ctime. An mtime can be set back, a ctime can't.
    const times = at === undefined || path === '' ? at?.mtimeNs : `${at.mtimeNs},${at.ctimeNs}`
    hash.update(at === undefined ? `${path} -;` : `${path},${at.mode},${at.size},${at.ino},${times};`)
    if (at?.isDirectory() !== true) return
    const names = (await listDirectory(place, { size: Number(at.size), slice })).map(({ name }) => name)
    for (const name of names.sort()) {
      // A clone's git directory is its record.
      if (path !== '' || join(tree.path, name) !== tree.gitDir) await visit(path === '' ? name : `${path}/${name}`)
    }
  }
  await visit('')
  return { value: hash.digest('hex'), withIndex }
}

const indexStamp = ({ gitDir }: Tree): string | undefined => {
  const found = lstatSync(join(gitDir, 'index'), { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.ino},${found.size},${found.mtimeNs}`
}
