import type { Codebase } from '../domain/environment.ts'
import type { MergedPullRequest } from '../domain/merge-proof.ts'
import type { Sha } from '../domain/names.ts'

/** Asks the code host. Few requests for any number of questions, and none for a repository that isn't there. */
export type Forge = {
  mergedPullRequests(
    codebase: Codebase,
    questions: readonly ForgeQuestion[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ForgeAnswer>
}

export type ForgeQuestion = {
  readonly tip: Sha
  /** Branches of the repository that a pull request of this work may come from. */
  readonly branches: readonly string[]
  /** Pull requests known to be about this work, wherever they come from. */
  readonly numbers: readonly number[]
}

export type ForgeAnswer = {
  /** Only those with one of the tips as head. */
  readonly merged: readonly MergedPullRequest[]
  /** Why some questions have no answer. */
  readonly problem?: { readonly forge: string; readonly message: string }
}
