import { AppError } from './errors.ts'
import type { BranchName, CodebaseId, EnvironmentId, Sha } from './names.ts'
import type { Trust } from './trust.ts'
import type { Work } from './work.ts'

export const environmentStatuses = ['creating', 'active', 'removing', 'removed', 'missing', 'released'] as const
export type EnvironmentStatus = (typeof environmentStatuses)[number]

/**
 * The state machine as a table; an illegal transition throws.
 * creating → removed: a creation that was undone. removing → active: a removal that was undone or refused late.
 * missing → removed: the work was taken up anew, or a person removed what was left of it.
 * creating, removing → released: the repository is gone, so nobody can finish or undo it.
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
    throw new AppError('illegal-transition', `an environment that is ${from} cannot become ${to}`)
  }
}

/** Live rows are the ones the unique indexes speak of: one per work, per branch, per path. */
export const liveStatuses = [
  'creating',
  'active',
  'removing',
  'missing',
] as const satisfies readonly EnvironmentStatus[]

/** How the branch came to be, which decides whether removal may ever delete it. */
export type BranchOrigin = 'created' | 'existing'

/** The isolated place for one work. It lives independently of any conversation. */
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
  /** true: created by Coppice; false: adopted, and then nothing in Coppice deletes it or its branch. */
  readonly owned: boolean
  readonly createdBy: string
  readonly createdAt: number
  readonly lastActivityAt: number
  /** Where the branch stood when the environment was made; undefined when that cannot be known. */
  readonly startSha: Sha | undefined
  /** The name of git's own record, `<common>/worktrees/<adminName>`; undefined until git has made one. */
  readonly adminName: string | undefined
  readonly baseBranch: string | undefined
  /** Where its content comes from; set when it is made, lowered but never raised except by a person. */
  readonly trust: Trust
  readonly prNumber: number | undefined
  readonly prBranch: string | undefined
}

/** A registered git repository. `repoPath` is the common git directory, never a linked worktree. */
export type Codebase = {
  readonly id: CodebaseId
  readonly host: string
  readonly name: string
  readonly repoPath: string
  /** The main working tree, or undefined for a bare repository. */
  readonly checkoutPath: string | undefined
  /** Which directory `repoPath` was when it was last seen: device, inode, birth. By it a moved one is told from a copy. */
  readonly repoInode: string | undefined
  readonly remote: string | undefined
  readonly remoteUrl: string | undefined
  readonly baseBranch: string | undefined
  readonly github: string | undefined
  readonly defaultAgent: string | undefined
  /** We cloned it, so it lives under the home and `codebase remove` may delete it. */
  readonly cloned: boolean
  readonly trustedConfig: string | undefined
  readonly fetchedAt: number | undefined
  readonly createdAt: number
}

/** A stacked PR shares the tree of the one below it; its head is not that one's. */
export const isForPullRequest = ({ prNumber }: IsolatedEnvironment, { type, id }: Work): boolean =>
  (type === 'pr' || type === 'review') && Number(id) === prNumber

/** An adopted tree is a person's, and is never moved. */
export const followsHeadOf = (environment: IsolatedEnvironment, work: Work): boolean =>
  environment.owned && isForPullRequest(environment, work)
