import { lstat, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { EnvironmentId } from '../../../../domain/names.ts'
import type { Tree } from '../../../../git/door.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { realParent } from './real-parent.ts'

export type PutResult = { readonly outcome: 'laid' | 'exists' } | { readonly outcome: 'blocked'; readonly at: string }

export type PutRequest = {
  readonly tree: Tree
  readonly environmentId: EnvironmentId
  readonly relativePath: string
  /** Missing directories get their modes from here. */
  readonly like: string | undefined
  /** Makes the file under a temporary name. */
  readonly make: (temporary: string) => Promise<unknown>
}

/**
 * Puts something into the tree whole or not at all, and only where nothing is. A crash half-way through a copy would
 * otherwise leave half a `.env`, which the next try takes for one that was there before.
 */
export const putFile = async ({ tree, environmentId, relativePath, like, make }: PutRequest): Promise<PutResult> => {
  const parent = await realParent(tree.path, relativePath, { like })
  if (parent.kind !== 'real') return { outcome: 'blocked', at: parent.kind === 'blocked' ? parent.at : relativePath }
  const target = join(parent.path, basename(relativePath))
  if ((await unlessMissing(lstat(target))) !== undefined) return { outcome: 'exists' }
  // Named after the environment: the next try finds what a crash left, and no branch can track that name beforehand.
  const temporary = join(tree.path, `.coppice-laying-${environmentId}`)
  try {
    await rm(temporary, { force: true })
    await make(temporary)
    await rename(temporary, target)
  } finally {
    await rm(temporary, { force: true })
  }
  return { outcome: 'laid' }
}
