import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { GateAnswer } from '../domain/gates.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { BranchName } from '../domain/names.ts'
import type { LeftOut, RestorePoint } from '../domain/restore-point.ts'
import type { Work } from '../domain/work.ts'
import type { Conversation } from '../store/store.ts'

/** Ask for the place of one work. The provider decides nothing about whose it is: the resolver has done that. */
export type IsolationRequest = {
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  /** Taken verbatim instead of the name that the work would get. */
  readonly branch?: BranchName
  /** A ref to start from instead of the codebase's base. */
  readonly base?: string
  readonly createdBy: string
  /** Other identities that find this environment from now on. */
  readonly aliases: readonly Work[]
  /** Why a pull request counts as a fork's although nobody said that it is one. */
  readonly doubt?: string | undefined
  readonly signal?: AbortSignal
}

export type Created = {
  readonly outcome: 'created'
  readonly environment: IsolatedEnvironment
  /** Sentences for the user: offline, diverged, setup not approved, … */
  readonly notices: readonly string[]
  /** A warm spare served. */
  readonly fromSpare: boolean
}
/** Somebody made it while we waited for the lock. */
export type Existing = { readonly outcome: 'existing'; readonly environment: IsolatedEnvironment }
export type LimitReached = { readonly outcome: 'limit'; readonly active: number; readonly limit: number }

export type RemoveOptions = {
  readonly force?: boolean
  /** Why: shown in reports and given to those who are told. */
  readonly trigger: 'command' | 'closed' | 'merged' | 'stale' | 'room' | 'fleet'
  /** Who or what for, in words that finish "it was removed (…)": for those who are told. */
  readonly why?: string
  /** The conversation that asks does not hold the environment against itself. */
  readonly askedBy?: string
  readonly dryRun?: boolean
  /** Why base may be out of date, from a caller that has fetched: then no branch is deleted as merged. */
  readonly staleBase?: string | undefined
  readonly signal?: AbortSignal
}

export type Removed = {
  readonly outcome: 'removed'
  readonly environment: IsolatedEnvironment
  readonly restorePoint: RestorePoint | undefined
  readonly branchDeleted: boolean
  /** Why the branch stayed or went: "merged: ancestor of origin/main", "2 commits not on main". */
  readonly branchNote: string
  readonly leftOut: readonly LeftOut[]
  /** Conversations that were detached and must be notified. */
  readonly letGo: readonly Conversation[]
  readonly notices: readonly string[]
}
/** An adopted environment is no longer tracked: nothing on disk changed. */
export type Released = {
  readonly outcome: 'released'
  readonly environment: IsolatedEnvironment
  readonly letGo: readonly Conversation[]
}
export type Refused = {
  readonly outcome: 'refused'
  readonly environment: IsolatedEnvironment
  readonly reasons: readonly GateAnswer[]
  /** What a removal by force would not keep. */
  readonly notKept?: readonly LeftOut[]
}
/** A dry run in which every gate passed. */
export type WouldRemove = {
  readonly outcome: 'would-remove'
  readonly environment: IsolatedEnvironment
  readonly merged: Merged
  /** What no restore point could hold. */
  readonly leftOut: readonly LeftOut[]
}
export type RemoveOutcome = Removed | Released | Refused | WouldRemove

export type Restored = {
  readonly environment: IsolatedEnvironment
  readonly notices: readonly string[]
}

export type Health = 'healthy' | 'missing' | 'not-ours' | 'cannot-tell'

/** The seam: a worktree today, a container or a remote machine tomorrow. One conformance suite over all of them. */
export type IsolationProvider = {
  readonly name: string
  create(request: IsolationRequest): Promise<Created | Existing | LimitReached>
  destroy(environment: IsolatedEnvironment, options: RemoveOptions): Promise<RemoveOutcome>
  /** `lookAgain`: whatever led to this point, asked once more when nobody else can add one. Without it: this very one. */
  restore(point: RestorePoint, lookAgain?: () => Promise<RestorePoint>): Promise<Restored>
  get(codebase: Codebase, work: Work): Promise<IsolatedEnvironment | undefined>
  list(codebase: Codebase): Promise<IsolatedEnvironment[]>
  adopt(codebase: Codebase, path: string, request: AdoptRequest): Promise<IsolatedEnvironment>
  /** Is it really there, and still this very instance? Starts no program. */
  healthCheck(codebase: Codebase, environment: IsolatedEnvironment): Promise<Health>
}

export type AdoptRequest = {
  readonly work?: Work
  readonly createdBy: string
  readonly aliases: readonly Work[]
  /** A person says that it is theirs: an environment that Coppice made is then never deleted either. */
  readonly claim?: true
  /** It is for a pull request that is not proven to be the repository's own: then its worktree is not either. */
  readonly forFork?: boolean
}
