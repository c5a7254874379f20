import type { Merged } from '../../../domain/merge-proof.ts'
import type { Sha } from '../../../domain/names.ts'

/** What becomes of the branch: it goes only with proof, and only if it still is where the proof saw it. */
export type BranchFate = {
  readonly merged: Merged
  /** Where the proof saw it; undefined when the branch is gone already. */
  readonly tip: Sha | undefined
  readonly goes: boolean
  /** "merged: ancestor of origin/main", "2 commits not on main". */
  readonly note: string
}
