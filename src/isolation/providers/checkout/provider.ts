import { readHead } from '../../../git/admin-dir.ts'
import type { Provider } from '../../context.ts'
import type { CheckoutKind } from './kind.ts'
import { uncommittedWork } from './look/uncommitted.ts'
import { detachedCommits } from './look/unreachable.ts'

/** What all providers whose environments are git checkouts on this machine have in common. */
type Shared =
  | 'create'
  | 'destroy'
  | 'whyNotRemovable'
  | 'restore'
  | 'forgetMissing'
  | 'trust'
  | 'isVouched'
  | 'recover'
  | 'discardPoint'
  | 'isRestorable'
  | 'headBranch'
  | 'glance'
  | 'followHead'

/** Imports only what reading needs and loads the rest on first use: `list` must start quickly. */
export const checkoutProvider = (kind: () => Promise<CheckoutKind>): Pick<Provider, Shared> => ({
  create: async (context, request) => (await import('./create.ts')).createEnvironment(context, await kind(), request),
  destroy: async (context, codebase, environment, options) =>
    (await import('./remove.ts')).removeEnvironment(context, await kind(), codebase, environment, options),
  whyNotRemovable: async (context, codebase, environment, question) =>
    (await import('./remove.ts')).whyNotRemovable(context, await kind(), codebase, environment, question),
  restore: async (context, codebase, point, lookAgain) =>
    (await import('./restore.ts')).restoreEnvironment(context, await kind(), codebase, point, lookAgain),
  forgetMissing: async (context, codebase, missing) => {
    const checkout = await kind()
    const { saveMissing } = await import('./save-missing.ts')
    const { restorePoint, notices } = await saveMissing(context, checkout, codebase, missing)
    // A worktree's branches are the repository's; only one of a clone's is restored.
    if (restorePoint === undefined || checkout.sharesRefs) return notices
    return [...notices, { kind: 'other-branches-saved', point: restorePoint.id }]
  },
  trust: async (context, codebase, environment, options) =>
    (await import('./trust-environment.ts')).trustEnvironment(context, codebase, environment, options),
  isVouched: async (context, codebase, environment, options) =>
    (await import('./trust-environment.ts')).isVouchedNow(context, codebase, environment, options),

  recover: async (context, codebase, { id, kind: operation }) => {
    const checkout = await kind()
    if (operation === 'remove') {
      await (await import('./removal-steps.ts')).recoverRemoval(context, checkout, codebase, id)
      return { outcome: 'settled' }
    }
    const { undoCreation } = await import('./undo-creation.ts')
    const undone = await undoCreation(context, codebase, checkout.undo, id, 'after-crash')
    if (undone.outcome === 'left') return { outcome: 'left', why: undone.why }
    return { outcome: undone.work === 'cannot-keep' ? 'left-to-user' : 'settled' }
  },

  discardPoint: async (context, codebase, id) =>
    (await import('./restore-point/restore-point.ts')).discardRestorePoint(context, codebase, id),
  isRestorable: async (context, codebase, point) =>
    (await import('./restore-point/restore-point.ts')).isRestorable(context, codebase, point),

  headBranch: async ({ gitDir }) => {
    const head = await readHead(gitDir)
    return head !== undefined && 'branch' in head ? head.branch : undefined
  },
  glance: async (context, tree, options) => ({
    dirty: await uncommittedWork(context, tree, options),
    detached: await detachedCommits(context, tree),
  }),
  followHead: async (context, codebase, environment, work, hints, options) =>
    (await import('./follow.ts')).followPullRequest(context, codebase, environment, work, hints, options),
})
