import type { RepoConfig } from '../domain/config/repository.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { RemoveTrigger } from '../domain/journal-data.ts'
import type { Merged, StaleBase } from '../domain/merge-proof.ts'
import type { Notice } from '../domain/notice.ts'
import type { BranchNote, BranchOutcome, RemovalReason } from '../domain/removal/branch-note.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import type { LeftOut, RestorePoint } from '../domain/removal/restore-point.ts'
import type { ProcessesInside } from '../process/inside/processes-inside.ts'
import type { Conversation } from '../store/store.ts'

export type RemoveOptions = {
  readonly force?: boolean
  readonly trigger: RemoveTrigger
  /** Shown to its users (default: depends on the trigger). */
  readonly why?: RemovalReason
  /** The conversation that asks doesn't block its own removal. */
  readonly askedBy?: string
  readonly dryRun?: boolean
  /** Why base may be out of date, from a caller that fetched: then no branch is deleted as merged. */
  readonly staleBase?: StaleBase | undefined
  readonly signal?: AbortSignal
}

/** May cleanup remove it? What was already found out is passed in, since many are asked about at once. */
export type RemovableQuestion = {
  readonly options: RemoveOptions
  readonly config: RepoConfig
  readonly merged: Merged
  readonly inside: () => Promise<ProcessesInside>
}

export type Removed = {
  readonly outcome: 'removed'
  readonly environment: IsolatedEnvironment
  readonly restorePoint: RestorePoint | undefined
  readonly branchDeleted: boolean
  /** Why the branch was kept or deleted. A string if an earlier version wrote it. */
  readonly branchNote: BranchNote | string
  readonly leftOut: readonly LeftOut[]
  /** Detached conversations, which must be notified. */
  readonly detachedConversations: readonly Conversation[]
  readonly notices: readonly Notice[]
}
/** An adopted environment is no longer tracked; nothing on disk changed. */
export type Released = {
  readonly outcome: 'released'
  readonly environment: IsolatedEnvironment
  readonly detachedConversations: readonly Conversation[]
}
export type Refused = {
  readonly outcome: 'refused'
  readonly environment: IsolatedEnvironment
  readonly reasons: readonly GateAnswer[]
  /** What a forced removal would not keep. */
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

/** What happened to the branch; undefined unless the worktree was removed. */
export const branchOutcomeOf = (outcome: RemoveOutcome): BranchOutcome | undefined =>
  outcome.outcome === 'removed' ? { deleted: outcome.branchDeleted, note: outcome.branchNote } : undefined
