import { basename } from 'node:path'
import { clearLock } from '../../../git/admin-dir.ts'
import { checkOutHead } from '../../../git/checkout.ts'
import { addWorktree } from '../../../git/worktree-add.ts'
import { reserveSpace } from '../../../git/reserve-space.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import { checkoutSettings } from '../checkout/checkout-settings.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { unreachableCommits } from '../checkout/look/unreachable.ts'
import { fastForward } from '../checkout/fast-forward.ts'
import { restoreGitFiles } from './restore-git-files.ts'
import { followRename } from '../checkout/follow-rename.ts'
import { forgetRecord, isForgotten, leftovers, linkAgain } from './forget.ts'
import { restorePointSource } from './restore-point-source.ts'
import { creationReason } from './lock-reasons.ts'
import { presenceOf, treeOfMissing } from './presence.ts'
import { claimSpare, takeSpare } from './spare.ts'
import { undoSteps } from './undo-creation.ts'

/** A linked worktree: the codebase's own repository has its branch, its commits and git's record of it. */
export const linkedWorktree: CheckoutKind = {
  name: 'worktree',
  sharesRefs: true,
  presence: presenceOf,
  movedTree: (tree, path) => ({ ...tree, path }),
  followRename,

  spares: { claim: claimSpare, take: takeSpare },
  add: async ({ context, kind, environment, plan, settings, whileWriting, signal }, onSpawn) => {
    await fastForward(context, plan)
    using _ = await reserveSpace(context.git, plan.repo)
    const tree = await addWorktree(context.git, plan.repo, {
      path: environment.path,
      branch: plan.origin === 'created' ? { create: plan.branch } : { existing: plan.branch },
      at: plan.at,
      lockReason: creationReason(environment.id),
      onSpawn,
    })
    await context.failpoint(`${kind}.added`)
    await checkOutHead(context.git, tree, {
      settings: settings ?? checkoutSettings(plan.trust),
      onSpawn: (child) => {
        onSpawn(child)
        whileWriting?.()
      },
      signal,
    })
    return tree
  },
  ready: async ({ gitDir }, { id }) => {
    await clearLock(gitDir, creationReason(id))
    return { adminName: basename(gitDir) }
  },
  undo: undoSteps,

  ...restorePointSource,
  unreachable: (context, _codebase, _environment, tree) => unreachableCommits(context, tree),
  treeOfMissing,
  heldForMissing: async () => undefined,
  restoreGitFiles: restoreGitFiles,

  forget: async (context, codebase, entryId, tree) => {
    if (tree !== undefined) await forgetRecord(context, codebase, entryId, tree.gitDir)
  },
  isForgotten,
  putBack: linkAgain,
  finishBranch: async (context, codebase, { branch }, { goes, tip }) => {
    if (!goes || tip === undefined) return { deleted: false }
    const dropped = await dropBranch(context, codebase, branch, tip)
    return dropped.deleted ? dropped : { deleted: false, note: dropped.why }
  },
  leftovers,
}
