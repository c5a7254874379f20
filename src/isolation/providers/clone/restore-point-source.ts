import { readHead } from '../../../git/admin-dir.ts'
import type { RestorePointSource } from '../checkout/kind.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { importCommit } from './import-commits.ts'
import { hasRefs, ownWork } from './own-work.ts'
import { madeOn, pinsOf } from './refs.ts'
import { tipsToKeep } from './tips.ts'

/** A restore point must reach all of a clone's own refs: that keeps what they borrow in the repository. */
export const restorePointSource: RestorePointSource = {
  isWhole: async ({ gitDir }) => {
    const head = await readHead(gitDir).catch(() => undefined)
    if (head === undefined) return false
    // The branch need not exist: `git switch --orphan` leaves the others.
    return 'sha' in head || hasRefs({ gitDir })
  },
  tipsToKeep,
  ownWork,
  madeOn: async (context, codebase, { id }) => madeOn(id, await pinsOf(context, repoOf(codebase), id)),
  importCommit: importCommit,
}
