import { dirname, join } from 'node:path'
import type { Sha } from '../domain/names.ts'
import { rawBytes } from '../domain/text/raw-path.ts'
import type { CheckoutOptions } from './checkout.ts'
import type { Git, Tree } from './door.ts'
import { withPrivateIndex } from './private-index.ts'

/** A private index with the files of a commit, and a way to write some of them elsewhere. */
export type CheckoutCopy = {
  readonly indexFile: string
  /** Writes these files (raw paths) as a checkout would, in one process. Returns their directory. */
  readonly write: (paths: readonly string[]) => Promise<string>
}

/**
 * What a checkout of this commit would write into the tree, with filters, line endings and encodings as currently
 * configured. Not `cat-file --filters`, which rejects names that start with a space.
 */
export const withCheckoutCopy = <T>(
  git: Git,
  tree: Tree,
  commit: Sha,
  work: (copy: CheckoutCopy) => Promise<T>,
  { settings, signal }: CheckoutOptions = {},
): Promise<T> =>
  withPrivateIndex(git, async (indexFile) => {
    const call = { at: tree, indexFile, locks: true, ...(settings && { settings }), ...(signal && { signal }) }
    await git.run({ ...call, operation: 'read-tree', args: ['read-tree', commit] })
    const directory = join(dirname(indexFile), 'files')
    const write = async (paths: readonly string[]): Promise<string> => {
      const args = ['checkout-index', '--quiet', '-z', '--stdin', `--prefix=${directory}/`]
      const stdin = Buffer.concat(paths.map((path) => rawBytes(`${path}\0`)))
      await git.run({ ...call, operation: 'checkout-index', args, stdin })
      return directory
    }
    return work({ indexFile, write })
  })
