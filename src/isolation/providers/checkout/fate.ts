import type { Merged } from '../../../domain/merge-proof.ts'
import type { Sha } from '../../../domain/names.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'

/** What becomes of the branch: it goes only with proof, and only if it still is where the proof saw it. */
export type BranchFate = {
  readonly merged: Merged
  /** Where the proof saw it; undefined when the branch is gone already. */
  readonly tip: Sha | undefined
  readonly goes: boolean
  readonly note: BranchNote
}
