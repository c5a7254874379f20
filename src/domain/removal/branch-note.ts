import type { Merged, StaleBase } from '../merge-proof.ts'

/** Why a worktree's branch was kept or deleted. */
export type BranchNote =
  /** `base`: where it would have to be merged, for display. */
  | { readonly kind: 'merge-status'; readonly merged: Merged; readonly base: string }
  | { readonly kind: 'stale-base'; readonly why: StaleBase }
  /** `not-judged`: it has commits that weren't checked. `moved`: someone moved it meanwhile. */
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

/** What happened to the branch. Earlier versions stored the note as text. */
export type BranchOutcome = { readonly deleted: boolean; readonly note: BranchNote | string }

/** Why a worktree was removed, for its users. */
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
