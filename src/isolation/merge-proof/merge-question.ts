import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { BranchName, Sha } from '../../domain/names.ts'
import type { AheadBehind } from '../../git/ahead-behind.ts'
import type { CallOptions, Git, Repo } from '../../git/door.ts'
import type { Base } from '../codebases/base-branch.ts'

export type BranchQuestion = {
  readonly branch: BranchName
  readonly tip: Sha
  /** Where its own commits begin; undefined if unknown. */
  readonly start: Sha | undefined
  /** It started with others' commits (a pull request's), which its reflog can't show. */
  readonly borrowed?: boolean
  /** The remote branch that it pushes to, if that has another name. */
  readonly pushesTo?: string | undefined
  /** Where the branch's reflog is (default: the codebase's repository). */
  readonly log?: Repo | undefined
  /** The base branch when the environment was created. */
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
  // A review pushes nowhere: the branch it names is a fork's.
  pushesTo: branch === `pr-${prNumber}-review` ? undefined : prBranch,
  startedFrom: baseBranch,
  log,
})

/** A branch can't have landed on its own tip, here or on any remote. */
export const isItsOwnBase = ({ branch, pushesTo }: BranchQuestion, { ref }: Pick<Base, 'ref'>): boolean =>
  [branch, pushesTo].some(
    (name) =>
      name !== undefined &&
      (ref === `refs/heads/${name}` || (ref.startsWith('refs/remotes/') && ref.endsWith(`/${name}`))),
  )

export type Inquiry = CallOptions & {
  readonly git: Git
  readonly repo: Repo
  readonly base: Base
  /** How far the tips are from base, if already known. */
  readonly positions?: ReadonlyMap<Sha, AheadBehind> | undefined
}
