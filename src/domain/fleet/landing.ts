import { AppError } from '../errors.ts'
import type { CodebaseId, Sha } from '../names.ts'
import type { ProcessIdentity } from '../process-identity.ts'

/** How a branch is brought onto its base. */
export const landingStrategies = ['squash', 'merge', 'rebase'] as const
export type LandingStrategy = (typeof landingStrategies)[number]

export const landingStates = ['queued', 'testing', 'landed', 'refused', 'superseded'] as const
export type LandingState = (typeof landingStates)[number]

/**
 * The state machine; an illegal transition throws. testing → queued: the base moved, another member of its batch was
 * red, or the testing process died. superseded: the branch was queued again, or its item was closed.
 */
const transitions: Record<LandingState, readonly LandingState[]> = {
  queued: ['testing', 'refused', 'superseded'],
  testing: ['queued', 'landed', 'refused', 'superseded'],
  landed: [],
  refused: [],
  superseded: [],
}

export const assertLandingTransition = (from: LandingState, to: LandingState): void => {
  if (!transitions[from].includes(to)) {
    throw new AppError('illegal-transition', `a landing that is ${from} can't become ${to}`)
  }
}

/** Whether it still has to be worked on. */
export const isOpenLanding = ({ state }: Pick<Landing, 'state'>): boolean => transitions[state].length > 0

export const openLandingStates: readonly LandingState[] = landingStates.filter((state) => transitions[state].length > 0)

/** A branch that is queued for its base branch, or has been. */
export type Landing = {
  readonly id: number
  readonly codebaseId: CodebaseId
  /** Undefined for a branch that was queued by name. */
  readonly itemId: number | undefined
  readonly branch: string
  /** Only this commit lands, wherever the branch goes. */
  readonly sha: Sha
  /** The branch to land on; undefined: the codebase's base. */
  readonly baseBranch: string | undefined
  /** Its pull request was merged as this commit, which only has to be tested. */
  readonly mergeCommit: Sha | undefined
  readonly state: LandingState
  readonly landedSha: Sha | undefined
  /** How often it was brought onto its base and tested. */
  readonly attempts: number
  readonly gate: LandingGate | undefined
  /** Why it was refused. */
  readonly why: LandingRefusal | undefined
  /** What is left to do after its last change of state. */
  readonly todo: LandingTodo | undefined
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** settle: remove its worktree, close its issue. return: its agent has to work on it again. */
export type LandingTodo = 'settle' | 'return'

/** The last gate command that ran. */
export type LandingGate = { readonly command: string; readonly exitCode: number | null; readonly log: string }

/** What its agent can do something about. */
export type LandingProblem =
  | { readonly kind: 'conflict'; readonly paths: readonly string[] }
  | { readonly kind: 'gate-failed'; readonly command: string; readonly log: string }

/** Why a branch couldn't land. */
export type LandingRefusal =
  | LandingProblem
  /** The commit is no longer in the repository. */
  | { readonly kind: 'commit-gone' }
  /** The merge commit of its pull request is no longer on the base branch. */
  | { readonly kind: 'merge-undone' }
  | { readonly kind: 'failed'; readonly message: string }

/** Why a codebase's queue can't go on. A person has to act, or it is tried again later. */
export type LandingBlock =
  | { readonly kind: 'offline'; readonly detail: string }
  /** The gates fail on the base branch itself, so no branch is to blame. */
  | { readonly kind: 'base-red'; readonly base: string; readonly command: string; readonly log: string }
  | { readonly kind: 'not-approved'; readonly commands: readonly string[] }
  /** Without a remote, moving a branch that is checked out would make its files look changed. */
  | { readonly kind: 'base-checked-out'; readonly base: string; readonly path: string }
  | { readonly kind: 'no-base'; readonly base: string }
  /** The address of the remote, or which one it is, has to be confirmed. */
  | { readonly kind: 'remote-changed'; readonly from: string; readonly to: string }
  | { readonly kind: 'remote-unconfirmed'; readonly remote: string; readonly url: string; readonly repository: string }
  | { readonly kind: 'remote-ambiguous'; readonly remotes: readonly string[] }
  | { readonly kind: 'rejected'; readonly said: string }
  | { readonly kind: 'base-moves'; readonly base: string; readonly attempts: number }
  | { readonly kind: 'failed'; readonly message: string }

/** A codebase's queue: who works on it, and what it has been pushing. */
export type LandingQueue = {
  readonly codebaseId: CodebaseId
  readonly holder: { readonly host: string; readonly process: ProcessIdentity } | undefined
  /** Recorded before the push, so that after a crash the remote is asked instead of pushing again. */
  readonly push: LandingPush | undefined
  /** The last commit that passed these gates. */
  readonly green: { readonly commit: Sha; readonly gates: string } | undefined
  readonly blocked: (LandingBlock & { readonly at: number }) | undefined
}

export type LandingPush = {
  /** The branch, and where it was and goes. */
  readonly base: string
  readonly from: Sha
  readonly to: Sha
  readonly members: readonly { readonly id: number; readonly landedSha: Sha }[]
  /** What they passed, and the digest of all gates. */
  readonly gate: LandingGate | undefined
  readonly gates: string
}
