import type { Codebase } from '../../../domain/environment.ts'
import { readRemovalData } from '../../../domain/journal-data.ts'
import type { Sha } from '../../../domain/names.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'
import type { Repo } from '../../../domain/tree.ts'
import { cloneAt, cloneBorrowing } from '../../../git/borrowing-clone.ts'
import { readRef, readRefs } from '../../../git/refs.ts'
import { remoteInfo } from '../../../git/remote.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { checkoutSettings } from '../checkout/checkout-settings.ts'
import { followRename } from '../checkout/follow-rename.ts'
import type { CheckoutKind, Making } from '../checkout/kind.ts'
import { bringRecord } from './bring-record.ts'
import { planDelivery, settleBranch, unreachable } from './deliver.ts'
import { keeping } from './keeping.ts'
import { presenceOf } from './presence.ts'
import { pinStart } from './refs.ts'
import { undoSteps } from './undo.ts'

/** A clone: everything that git has of it lies in its own directory, and the repository gets its commits by being brought them. */
export const ownClone: CheckoutKind = {
  name: 'clone',
  sharesRefs: false,
  presence: presenceOf,
  movedTree: (_tree, path) => cloneAt(path),
  followRename,

  spares: undefined,
  add: async (making, onSpawn) => {
    const { context, codebase, environment, plan, settings, signal } = making
    const base = await baseRef(making)
    const point = making.pointId === undefined ? undefined : await context.store.restorePoints.get(making.pointId)
    const pins = { start: plan.at, base: base?.sha, restored: point?.commit }
    await pinStart(context, plan.repo, environment.id, pins)
    await context.failpoint(`${making.kind}.pinned`)
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
        onSpawn,
      },
      { signal },
    )
  },
  ready: async () => ({ adminName: undefined }),
  undo: undoSteps,

  ...keeping,
  unreachable,
  // Whatever it had lies in its directory, and that is away.
  treeOfMissing: async () => undefined,
  bringRecord,

  forget: async (context, codebase, entryId, tree) => {
    const entry = await context.store.journal.get(entryId)
    const environment = entry?.environmentId && (await context.store.environments.get(entry.environmentId))
    if (entry === undefined || !environment) return
    const { refs } = await planDelivery(context, codebase, environment, tree)
    const judged = readRemovalData(entry).tip
    const tip = (await readRef(context.git, tree, `refs/heads/${environment.branch}`))?.sha ?? judged
    // What could not be brought when its branch was judged is here with the restore point: nothing was proven about it.
    const unjudged = tip === judged ? {} : { tip, branchGoes: false, note: { kind: 'not-judged' } satisfies BranchNote }
    await context.store.journal.advance(entryId, { step: 'forgetting', data: { deliver: refs, ...unjudged } })
    await context.failpoint('remove.forgetting')
  },
  isForgotten: async (_context, _codebase, { step }) => step === 'forgetting',
  putBack: async () => undefined,
  settleBranch,
  leftovers: async () => [],
}

/** Base as the repository has it, so that the work can be compared with it. */
const baseRef = async ({
  context,
  codebase: { remote },
  environment: { baseBranch },
  plan,
}: Making): Promise<{ name: string; sha: Sha } | undefined> => {
  if (baseBranch === undefined) return undefined
  const names = [...(remote === undefined ? [] : [`refs/remotes/${remote}/${baseBranch}`]), `refs/heads/${baseBranch}`]
  const refs = await readRefs(context.git, plan.repo, names)
  return names.map((name) => refs.get(name)).find((ref) => ref !== undefined)
}

/** Where it pushes to and fetches from: the repository's remote, never the repository itself. */
const remoteConfig = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
): Promise<(readonly [string, string])[]> => {
  const { remote } = codebase
  const repo: Repo = repoOf(codebase)
  const info = remote === undefined ? undefined : await remoteInfo(git, repo, remote)
  if (info === undefined) return []
  return [
    [`remote.${info.name}.url`, info.url],
    [`remote.${info.name}.fetch`, `+refs/heads/*:refs/remotes/${info.name}/*`],
  ]
}
