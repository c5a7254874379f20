import { readRemovalData } from '../../../domain/journal-data.ts'
import type { Sha } from '../../../domain/names.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'
import { cloneAt, cloneBorrowing } from '../../../git/borrowing-clone.ts'
import { readRef, readRefs } from '../../../git/refs.ts'
import { checkoutSettings } from '../checkout/checkout-settings.ts'
import { followRename } from '../checkout/follow-rename.ts'
import type { CheckoutKind, Creation } from '../checkout/kind.ts'
import { restoreGitFiles } from './restore-git-files.ts'
import { finishBranch } from './deliver.ts'
import { restorePointSource } from './restore-point-source.ts'
import { heldForMissing } from './missing.ts'
import { unreachable } from './only-in-clone.ts'
import { remoteConfig } from './own-work.ts'
import { presenceOf } from './presence.ts'
import { pinStart } from './refs.ts'
import { undoSteps } from './undo-creation.ts'

/** A clone: everything git has of it is in its own directory, and its commits are imported into the repository. */
export const ownClone: CheckoutKind = {
  name: 'clone',
  sharesRefs: false,
  presence: presenceOf,
  movedTree: (_tree, path) => cloneAt(path),
  followRename,

  spares: undefined,
  add: async (creation, onSpawn) => {
    const { context, codebase, environment, plan, settings, whileWriting, signal } = creation
    const base = await baseRef(creation)
    const point = creation.pointId === undefined ? undefined : await context.store.restorePoints.get(creation.pointId)
    // If restored on a branch of the repository: its own to move only if it was created on that branch.
    const isOwn = point === undefined || plan.origin === 'created' || point.contents.madeOn === plan.branch
    const branch = isOwn ? plan.branch : (point.contents.madeOn ?? point.contents.environment.branch)
    const pins = { start: plan.at, branch, base: base?.sha, restored: point?.commit }
    await pinStart(context, plan.repo, environment.id, pins)
    await context.failpoint(`${creation.kind}.pinned`)
    return cloneBorrowing(
      context.git,
      {
        path: environment.path,
        lender: plan.repo,
        branch: plan.branch,
        at: plan.at,
        refs: base === undefined || base.name === `refs/heads/${plan.branch}` ? [] : [base],
        config: await remoteConfig(context, codebase),
        settings: settings ?? checkoutSettings(plan.trust),
        onSpawn: (child) => {
          onSpawn(child)
          whileWriting?.()
        },
      },
      { signal },
    )
  },
  ready: async () => ({ adminName: undefined }),
  undo: undoSteps,

  ...restorePointSource,
  unreachable,
  // Everything git had of it is in its directory, which is missing.
  treeOfMissing: async () => undefined,
  heldForMissing,
  restoreGitFiles: restoreGitFiles,

  forget: async (context, _codebase, entryId, tree) => {
    const entry = await context.store.journal.get(entryId)
    const environment = entry?.environmentId && (await context.store.environments.get(entry.environmentId))
    if (entry === undefined || !environment) return
    const judged = readRemovalData(entry).tip
    const ref = tree && (await readRef(context.git, tree, `refs/heads/${environment.branch}`))
    const tip = ref?.sha ?? judged
    // What couldn't be imported when its branch was judged came with the restore point: nothing is proven about it.
    const unjudged = tip === judged ? {} : { tip, branchGoes: false, note: { kind: 'not-judged' } satisfies BranchNote }
    await context.store.journal.advance(entryId, { step: 'forgetting', data: unjudged })
    await context.failpoint('remove.forgetting')
  },
  isForgotten: async (_context, _codebase, { step }) => step === 'forgetting',
  putBack: async () => undefined,
  finishBranch: finishBranch,
  leftovers: async () => [],
}

/** Base as in the repository, to compare the work with. */
const baseRef = async ({
  context,
  codebase: { remote },
  environment: { baseBranch },
  plan,
}: Creation): Promise<{ name: string; sha: Sha } | undefined> => {
  if (baseBranch === undefined) return undefined
  const names = [...(remote === undefined ? [] : [`refs/remotes/${remote}/${baseBranch}`]), `refs/heads/${baseBranch}`]
  const refs = await readRefs(context.git, plan.repo, names)
  return names.map((name) => refs.get(name)).find((ref) => ref !== undefined)
}
