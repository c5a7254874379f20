import { AppError } from './errors.ts'
import type { BranchName, CodebaseId, EnvironmentId, Sha } from './names.ts'
import type { Trust } from './trust.ts'
import { isAboutPullRequest, type Work } from './work.ts'

export const environmentStatuses = ['creating', 'active', 'removing', 'removed', 'missing', 'released'] as const
export type EnvironmentStatus = (typeof environmentStatuses)[number]

/**
 * The state machine; an illegal transition throws.
 * creating → removed: the creation was undone. removing → active: the removal was undone or refused late.
 * missing → removed: the work was started again, or a person removed what was left of it.
 * creating, removing → released: the repository is gone, so it can't be finished or undone.
 */
const transitions: Record<EnvironmentStatus, readonly EnvironmentStatus[]> = {
  creating: ['active', 'removed', 'released'],
  active: ['removing', 'missing', 'released'],
  removing: ['removed', 'active', 'missing', 'released'],
  missing: ['active', 'removing', 'removed', 'released'],
  removed: [],
  released: [],
}

export const canBecome = (from: EnvironmentStatus, to: EnvironmentStatus): boolean => transitions[from].includes(to)

export const assertTransition = (from: EnvironmentStatus, to: EnvironmentStatus): void => {
  if (!canBecome(from, to)) {
    throw new AppError('illegal-transition', `an environment that is ${from} can't become ${to}`)
  }
}

/** The unique indexes cover live rows: one per work, per branch, per path. */
export const liveStatuses = [
  'creating',
  'active',
  'removing',
  'missing',
] as const satisfies readonly EnvironmentStatus[]

/** Where the branch came from, which decides whether removal may ever delete it. */
export type BranchOrigin = 'created' | 'existing'

/** The isolated environment for one work, independent of any conversation. */
export type IsolatedEnvironment = {
  readonly id: EnvironmentId
  readonly host: string
  readonly codebaseId: CodebaseId
  readonly work: Work
  readonly provider: string
  readonly path: string
  readonly branch: BranchName
  readonly branchOrigin: BranchOrigin
  readonly status: EnvironmentStatus
  /** True: created by Coppice. False: adopted, so Coppice never deletes it or its branch. */
  readonly owned: boolean
  readonly createdBy: string
  readonly createdAt: number
  readonly lastActivityAt: number
  /** The branch's tip when the environment was created; undefined if unknown. */
  readonly startSha: Sha | undefined
  /** The name of git's own record, `<common>/worktrees/<adminName>`; undefined until git has created it. */
  readonly adminName: string | undefined
  readonly baseBranch: string | undefined
  /** Where its content comes from; set at creation. May be lowered; only a person can raise it. */
  readonly trust: Trust
  /** The commit that a person vouched for; undefined unless `trust` is `vouched`. */
  readonly vouchedSha?: Sha | undefined
  /** HEAD's reflog at that moment (`git/reflog.ts`): earlier entries may be an untrusted run's. */
  readonly vouchedLog?: string | undefined
  /** The branch's tip when the environment was removed; undefined before, and if removed by an earlier version. */
  readonly removedTip?: Sha | undefined
  readonly prNumber: number | undefined
  readonly prBranch: string | undefined
  /** A persistent chat made it, or has worked in it: it is its user's own, and only a person removes it. */
  readonly persistent?: boolean | undefined
}

/** A registered git repository. `repoPath` is the common git directory, never a linked worktree. */
export type Codebase = {
  readonly id: CodebaseId
  readonly host: string
  readonly name: string
  readonly repoPath: string
  /** The main working tree, or undefined for a bare repository. */
  readonly checkoutPath: string | undefined
  /** Device, inode and birth time of `repoPath` when last seen, to tell a moved repository from a copy. */
  readonly repoInode: string | undefined
  readonly remote: string | undefined
  readonly remoteUrl: string | undefined
  /** The remote's default branch when last seen. */
  readonly baseBranch: string | undefined
  /** What new work starts from here, unless the repository's own configuration names another. */
  readonly base: string | undefined
  readonly github: string | undefined
  readonly defaultAgent: string | undefined
  /** We cloned it, so it's under the home and `codebase remove` may delete it. */
  readonly cloned: boolean
  readonly trustedConfig: string | undefined
  /** The approval of the commands in its formulas and landing gates. */
  readonly trustedChecks?: string | undefined
  /** The base commit whose `.coppice/config.yaml` was read last, and that file; without text, the commit has none. */
  readonly configCommit: string | undefined
  readonly configText: string | undefined
  readonly fetchedAt: number | undefined
  readonly createdAt: number
}

/** A stacked PR shares the worktree of the one below it, but not its head. */
export const isForPullRequest = ({ prNumber }: IsolatedEnvironment, work: Work): boolean =>
  isAboutPullRequest(work) && Number(work.id) === prNumber

/** An adopted worktree is a person's, so its branch is never moved. */
export const followsHeadOf = (environment: IsolatedEnvironment, work: Work): boolean =>
  environment.owned && isForPullRequest(environment, work)
