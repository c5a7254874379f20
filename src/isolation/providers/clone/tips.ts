import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { unlessMissingSync } from '../../../domain/missing.ts'
import type { Sha } from '../../../domain/names.ts'
import type { Repo, Tree } from '../../../domain/tree.ts'
import { hasShorterHistory } from '../../../git/borrowing-clone.ts'
import { objectTypes } from '../../../git/named-objects.ts'
import type { Git } from '../../../git/door.ts'
import { listRefs, type Ref } from '../../../git/refs.ts'
import { tooLarge } from '../../../process/files/read-untrusted.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { RestorePointSource } from '../checkout/kind.ts'

/**
 * Every ref of a clone. An agent can write millions of them to one file in a second, and every listing would read them
 * all: such a clone is left alone until someone has checked it.
 */
export const refsOfClone = async (git: Git, tree: Tree): Promise<Ref[]> => {
  assertFewRefs(tree)
  return listRefs(git, tree, ['refs/'])
}

export const assertFewRefs = ({ commonDir }: Repo): void => {
  const file = join(commonDir, 'packed-refs')
  const size = unlessMissingSync(() => lstatSync(file))?.size ?? 0
  if (size > maxPackedBytes) throw tooLarge(file, size, maxPackedBytes)
}

/** ~200,000 refs. */
const maxPackedBytes = 16 * 1024 * 1024

/** The commits that the clone's own refs lead to. */
export const tipsToKeep: RestorePointSource['tipsToKeep'] = async (context, codebase, tree) =>
  (await namedTips(context, codebase, tree)).commits

export type NamedTips = {
  readonly commits: readonly Sha[]
  /** The refs that point straight at those. */
  readonly refs: readonly Ref[]
}

export const namedTips = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  tree: Tree,
): Promise<NamedTips> => {
  // After `git fetch --depth=1`, fetched commits have no history here; the remote does.
  const isFetched = hasShorterHistory(tree, repoOf(codebase)) ? /^refs\/remotes\// : undefined
  const all = (await refsOfClone(git, tree)).filter(({ name }) => isFetched?.test(name) !== true)
  const refs = all.filter(({ committerDate }) => committerDate !== undefined)
  const others = all.filter(({ committerDate }) => committerDate === undefined).map(({ sha }) => `${sha}^{commit}`)
  const commits = new Set([...refs.map(({ sha }) => sha), ...(await objectTypes(git, tree, others)).keys()])
  return { commits: [...commits], refs: refs.filter(({ target }) => target === undefined) }
}
