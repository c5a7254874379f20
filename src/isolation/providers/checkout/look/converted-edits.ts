import type { Sha } from '../../../../domain/names.ts'
import { bytesBelow } from '../../../../domain/text/raw-path.ts'
import type { Tree } from '../../../../git/door.ts'
import { withCheckoutCopy } from '../../../../git/checkout-copy.ts'
import type { Setting } from '../../../../git/neutral.ts'
import type { IsolationContext } from '../../../context.ts'
import { filesInLargeStore } from '../restore-point/large-files.ts'
import { sameBytes } from '../provision/same-content.ts'

export type ConvertedEdits = {
  /** The commit that these files (raw paths) were checked out from; it has all of them. */
  readonly commit: Sha
  readonly paths: readonly string[]
  /** Those of the checkout that wrote them. */
  readonly settings: readonly Setting[]
  /** Whether the file on disk (first) is what the checkout wrote (second). */
  readonly isSame?: (onDisk: Buffer, written: Buffer) => Promise<boolean>
}

/**
 * Git calls a file clean when its clean filter or line-end conversion yields the same blob (nbstripout drops a
 * notebook's output). Returns those whose bytes exist nowhere else: a checkout of their commit would write others, and
 * Git LFS doesn't store them. If a filter fails, the file counts as edited or this throws.
 */
export const convertedEdits = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  { commit, paths, settings, isSame = sameBytes }: ConvertedEdits,
): Promise<string[]> => {
  if (paths.length === 0) return []
  const compare = async (directory: string, asked: readonly string[]): Promise<string[]> => {
    const edited: string[] = []
    for (const path of asked) {
      if (!(await isSame(bytesBelow(tree.path, path), bytesBelow(directory, path)))) edited.push(path)
    }
    return edited
  }
  return withCheckoutCopy(
    git,
    tree,
    commit,
    async ({ indexFile, write }) => {
      const large = await filesInLargeStore(git, tree, paths, { indexFile })
      const asked = paths.filter((path) => !large.has(path))
      return asked.length === 0 ? [] : compare(await write(asked), asked)
    },
    { settings },
  )
}
