import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { BranchName, Sha } from '../../domain/names.ts'
import type { AheadBehind } from '../../git/ahead-behind.ts'
import type { CallOptions, Git, Repo } from '../../git/door.ts'
import type { Base } from '../codebases/base-branch.ts'

export type BranchQuestion = {
  readonly branch: BranchName
  readonly tip: Sha
  /** Where its own commits begin; undefined when that is not known. */
  readonly start: Sha | undefined
  /** It came with commits that others made (a pull request's), which its reflog cannot show. */
  readonly borrowed?: boolean
  /** The branch on the remote that it pushes to, if that has another name. */
  readonly pushesTo?: string | undefined
  /** Where the branch's reflog is; undefined: in the codebase's repository. */
  readonly log?: Repo | undefined
  /** The branch that was base when the environment was made. */
  readonly startedFrom?: string | undefined
}

export const questionAbout = (
  { branch, startSha, prNumber, prBranch, baseBranch }: IsolatedEnvironment,
  tip: Sha,
  log?: Repo,
): BranchQuestion => ({
  branch,
  tip,
  start: startSha,
  borrowed: prNumber !== undefined,
  // A review pushes nowhere: the branch that it names is a fork's.
  pushesTo: branch === `pr-${prNumber}-review` ? undefined : prBranch,
  startedFrom: baseBranch,
  log,
})

/** Its own tip, here or on any remote, is no base that it could have landed on. */
export const isItsOwnBase = ({ branch, pushesTo }: BranchQuestion, { ref }: Pick<Base, 'ref'>): boolean =>
  [branch, pushesTo].some(
    (name) =>
      name !== undefined &&
      (ref === `refs/heads/${name}` || (ref.startsWith('refs/remotes/') && ref.endsWith(`/${name}`))),
  )

/** What one look at the commits is about. */
export type Inquiry = CallOptions & {
  readonly git: Git
  readonly repo: Repo
  readonly base: Base
  /** Where the tips stand to base, if that has been asked already. */
  readonly positions?: ReadonlyMap<Sha, AheadBehind> | undefined
}
