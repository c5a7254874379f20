import { chmod, lstat, rm, writeFile } from 'node:fs/promises'
import { AppError } from '../../../../domain/errors.ts'
import { toSha } from '../../../../domain/names.ts'
import { toRaw } from '../../../../domain/text/raw-path.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { catFiles } from '../../../../git/blobs.ts'
import { convertedFiles } from '../../../../git/converted.ts'
import type { Tree } from '../../../../git/door.ts'
import { joinTreePath } from '../../../../git/tree-path.ts'
import type { IsolationContext } from '../../../context.ts'

/**
 * Undoes every conversion of a checkout: each file gets its blob's bytes, which a restore point has if they were the
 * bytes on disk. Attributes and configuration may have changed since the removal.
 */
export const restoreRawBytes = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  { contents: { largeFiles, dirty, converted } }: RestorePoint,
): Promise<void> => {
  // Points of earlier versions left these bytes to the checkout.
  if (largeFiles === undefined) return
  // These are written from the snapshot later.
  const later = new Set(dirty ? converted : [])
  const files = (await convertedFiles(git, tree)).filter(({ bytes }) => !later.has(toRaw(bytes)))
  const byBlob = Map.groupBy(files, ({ sha }) => sha)
  let laid = 0
  await catFiles(git, tree, [...byBlob.keys()], async (sha, content) => {
    laid += 1
    for (const file of byBlob.get(toSha(sha)) ?? []) {
      const path = joinTreePath(tree.path, file)
      const { mode } = await lstat(path)
      await rm(path)
      await writeFile(path, content, { mode: 0o600, flag: 'wx' })
      await chmod(path, mode & 0o777)
    }
  })
  if (laid !== byBlob.size) throw new AppError('restore-failed', 'some of its files are gone from the repository')
}
