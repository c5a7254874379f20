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
  /** Writes it under a temporary name. */
  readonly make: (temporary: string) => Promise<unknown>
}

/**
 * Puts a file into the tree atomically, and only if nothing is there. Otherwise a crash during a copy would leave half
 * a `.env`, which the next try would take for an existing one.
 */
export const putFile = async ({ tree, environmentId, relativePath, like, make }: PutRequest): Promise<PutResult> => {
  const parent = await realParent(tree.path, relativePath, { like })
  if (parent.kind !== 'real') return { outcome: 'blocked', at: parent.kind === 'blocked' ? parent.at : relativePath }
  const target = join(parent.path, basename(relativePath))
  if ((await unlessMissing(lstat(target))) !== undefined) return { outcome: 'exists' }
  // Named after the environment: the next try finds what a crash left, and no branch can track that name in advance.
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
