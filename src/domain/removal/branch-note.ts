import type { Merged, StaleBase } from '../merge-proof.ts'

/** Why a branch stayed or went with its worktree. */
export type BranchNote =
  /** `base`: where it would have to be merged, as people say it. */
  | { readonly kind: 'merge-status'; readonly merged: Merged; readonly base: string }
  | { readonly kind: 'stale-base'; readonly why: StaleBase }
  /** `not-judged`: it has commits that nobody looked at. `moved`: somebody moved it meanwhile. */
  | { readonly kind: 'no-own-commits' | 'existed-before' | 'directory-missing' | 'moved' | 'not-judged' }
  | { readonly kind: 'gone'; readonly branch: string }
  | { readonly kind: 'checked-out'; readonly holder: string }

export const branchNoteKinds = [
  'merge-status',
  'stale-base',
  'no-own-commits',
  'existed-before',
  'directory-missing',
  'moved',
  'not-judged',
  'gone',
  'checked-out',
] as const satisfies readonly BranchNote['kind'][]

/** What became of the branch. A string: an earlier version wrote down the words. */
export type BranchOutcome = { readonly deleted: boolean; readonly note: BranchNote | string }

/** Why a worktree went, for those who used it. */
export type RemovalReason =
  | { readonly kind: 'on-request'; readonly by?: string }
  | {
      readonly kind: 'closed' | 'merged' | 'stale' | 'to-make-room' | 'with-its-fleet' | 'replaced' | 'repository-gone'
    }
  | { readonly kind: 'proven-merged'; readonly merged: Merged; readonly base: string }
  | { readonly kind: 'idle-since'; readonly at: number }

export const removalReasonKinds = [
  'on-request',
  'closed',
  'merged',
  'stale',
  'to-make-room',
  'with-its-fleet',
  'replaced',
  'repository-gone',
  'proven-merged',
  'idle-since',
] as const satisfies readonly RemovalReason['kind'][]
