import type { Sha } from '../../../domain/names.ts'
import { endsEarlier } from '../../../git/borrowing-clone.ts'
import { objectTypes } from '../../../git/named-objects.ts'
import { listRefs } from '../../../git/refs.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { Keeping } from '../checkout/kind.ts'

/** The commits that the clone's own refs lead to. */
export const tipsToKeep: Keeping['tipsToKeep'] = async ({ git }, codebase, tree): Promise<Sha[]> => {
  // After `git fetch --depth=1` what was fetched has no history here; the remote has it.
  const isFetched = endsEarlier(tree, repoOf(codebase)) ? /^refs\/remotes\// : undefined
  const refs = (await listRefs(git, tree, ['refs/'])).filter(({ name }) => isFetched?.test(name) !== true)
  const commits = refs.filter(({ committerDate }) => committerDate !== undefined).map(({ sha }) => sha)
  const others = refs.filter(({ committerDate }) => committerDate === undefined).map(({ sha }) => `${sha}^{commit}`)
  return [...new Set([...commits, ...(await objectTypes(git, tree, others)).keys()])]
}
