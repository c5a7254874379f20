import type { Merged } from '../../../domain/merge-proof.ts'
import type { Sha } from '../../../domain/names.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'

/** What happens to the branch: it is deleted only with proof, and only if it hasn't moved since. */
export type BranchFate = {
  readonly merged: Merged
  /** Its tip when it was proven; undefined if the branch is gone. */
  readonly tip: Sha | undefined
  readonly goes: boolean
  readonly note: BranchNote
}
