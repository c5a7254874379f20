import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { BranchName, Sha } from '../domain/names.ts'
import type { AheadBehind } from '../git/ahead-behind.ts'
import type { CallOptions, Git, Repo } from '../git/door.ts'
import type { Base } from './base.ts'

export type BranchQuestion = {
  readonly branch: BranchName
  readonly tip: Sha
  /** Where its own commits begin; undefined when that is not known. */
  readonly start: Sha | undefined
  /** It came with commits that others made (a pull request's), which its reflog cannot show. */
  readonly borrowed?: boolean
}

export const questionAbout = (
  { branch, startSha, prNumber }: Pick<IsolatedEnvironment, 'branch' | 'startSha' | 'prNumber'>,
  tip: Sha,
): BranchQuestion => ({ branch, tip, start: startSha, borrowed: prNumber !== undefined })

/** What one look at the commits is about. */
export type Inquiry = CallOptions & {
  readonly git: Git
  readonly repo: Repo
  readonly base: Base
  /** Where the tips stand to base, if that has been asked already. */
  readonly positions?: ReadonlyMap<Sha, AheadBehind> | undefined
}
