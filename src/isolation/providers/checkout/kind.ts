/*
 * Environments that are git checkouts on this machine. In: what differs between linked worktrees and clones
 * (`CheckoutKind`). Out: creating, removing, restoring and recovering, the same for both.
 */
import type { Work } from '../../../domain/work.ts'
import type { Setting } from '../../../git/neutral.ts'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import type { Sha } from '../../../domain/names.ts'
import type { ProcessIdentity } from '../../../domain/process-identity.ts'
import type { ProviderName } from '../../../domain/provider-name.ts'
import type { LeftAlone, Notice } from '../../../domain/notice.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'
import type { LeftOut } from '../../../domain/removal/restore-point.ts'
import type { Tree } from '../../../domain/tree.ts'
import type { JournalEntry, Spare, Store } from '../../../store/store.ts'
import type { IsolationContext } from '../../context.ts'
import type { Unreachable } from '../../../domain/removal/unreachable.ts'
import type { FollowedRename, Presence } from '../../provider.ts'
import type { CreationRecord } from './creation-record.ts'
import type { Plan } from './plan.ts'

/** What became of work that somebody had done in a half-made environment. */
export type Salvaged = 'nothing' | 'saved' | 'cannot-keep'

export type Undone =
  | { readonly outcome: 'undone'; readonly work: Salvaged }
  | { readonly outcome: 'left'; readonly why: LeftAlone }

/**
 * `just-made`: the lock was held all along, so there is nobody's work in it. `just-failed`: it failed in this process,
 * which has awaited its children, but others could work in it meanwhile. `after-crash`: children may still run.
 */
export type UndoWhen = 'just-made' | 'just-failed' | 'after-crash'

/** It stays as it is for now, and this is why. */
export type NotUndone = { readonly left: LeftAlone }

export type CreationUndo = {
  readonly codebase: Codebase
  readonly entry: JournalEntry
  readonly data: CreationRecord
  readonly when: UndoWhen
}

/** What differs between the kinds of checkout when one that was being made is taken back. */
export type UndoSteps = {
  /** A git that a crash left running in it, besides those of the repository; in words. */
  stillRunning(context: IsolationContext, data: CreationRecord): Promise<string | undefined>
  /** Everywhere its directory may be. */
  paths(data: CreationRecord): readonly string[]
  /** Saves what others did in it, and takes its directory away. */
  takeBack(context: IsolationContext, undoing: CreationUndo): Promise<Salvaged | NotUndone>
  /** The refs that were made for it go. */
  dropRefs(context: IsolationContext, undoing: CreationUndo, saved: Salvaged): Promise<void>
}

/** What a restore point needs to know of the checkout that it is of. */
export type RestorePointSource = Pick<CheckoutKind, 'isWhole' | 'tipsToKeep' | 'ownWork' | 'importCommit' | 'madeOn'>

/** Commits that a restore point must reach, and the names that they had, as git's `packed-refs` lists them. */
export type HeldForMissing = {
  readonly tip: Sha | undefined
  readonly commits: readonly Sha[]
  readonly packedRefs: string
  readonly madeOn: string | undefined
}

/**
 * Creating, removing and restoring go the same way for every kind of checkout. This is what differs: where git keeps what
 * it knows of one, and how the codebase's repository gets to know its commits.
 */
export type CheckoutKind = {
  readonly name: ProviderName
  /** Its branches are the repository's own. */
  readonly sharesRefs: boolean
  presence(codebase: Codebase, environment: IsolatedEnvironment): Promise<Presence>
  /** The same checkout after its directory was moved. */
  movedTree(tree: Tree, path: string): Tree
  followRename(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    tree: Tree,
    options: { readonly dryRun?: boolean | undefined },
  ): Promise<FollowedRename>

  /** Undefined: it keeps none. */
  readonly spares:
    | {
        /** Takes the row out and writes down, in the same transaction, whose the directory is now. */
        claim(store: Store, spare: Spare, entryId: string): Promise<boolean>
        /** Undefined when the spare cannot serve: the ordinary path is taken then. */
        take(making: Creation, entry: JournalEntry, spare: Spare): Promise<Tree | undefined>
      }
    | undefined
  /** Git's part of a creation, under the repository's lock and after row and intent: the directory is there and empty. */
  add(making: Creation, onSpawn: (identity: ProcessIdentity) => void): Promise<Tree>
  /** Nothing says any more that it is being made. Answers what its row is to remember. */
  ready(tree: Tree, environment: IsolatedEnvironment): Promise<{ readonly adminName: string | undefined }>
  readonly undo: UndoSteps
  /** Whether git can be asked about the checkout, or was killed while it made it. */
  isWhole(tree: Tree): Promise<boolean>

  unreachable(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    tree: Tree,
  ): Promise<Unreachable[]>
  /** What git still knows of one whose directory is away; undefined when that is nothing. */
  treeOfMissing(codebase: Codebase, environment: IsolatedEnvironment): Promise<Tree | undefined>
  /** What the codebase's repository holds for one whose directory is away and that has no record there. */
  heldForMissing(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
  ): Promise<HeldForMissing | undefined>
  /** Commits that a restore point must reach, besides HEAD, the branch and what only reflogs name. */
  tipsToKeep(context: IsolationContext, codebase: Codebase, tree: Tree): Promise<readonly Sha[]>
  /** Names of what somebody made in a git directory that is the checkout's own, beside commits. */
  ownWork(context: IsolationContext, codebase: Codebase, tree: Tree): Promise<readonly string[]>
  /** The branch that it was made on, if an agent in it can rename that without the repository knowing. */
  madeOn(context: IsolationContext, codebase: Codebase, environment: IsolatedEnvironment): Promise<string | undefined>
  /** The codebase's repository gets everything that this commit reaches. */
  importCommit(context: IsolationContext, codebase: Codebase, tree: Tree, commit: Sha): Promise<void>
  /** Git's own files of the checkout, from where a restore point keeps them. */
  restoreGitFiles(saved: string, tree: Tree, leftOut: LeftOut[]): Promise<void>

  /**
   * The point of no return of a removal: what git has of the checkout beside its directory goes. Without a tree when
   * there is neither a directory nor a record of it.
   */
  forget(context: IsolationContext, codebase: Codebase, entryId: string, tree: Tree | undefined): Promise<void>
  /** After a crash: was it passed? Then this ends what was begun. */
  isForgotten(context: IsolationContext, codebase: Codebase, entry: JournalEntry): Promise<boolean>
  /** The directory is back, perhaps at another path. */
  putBack(codebase: Codebase, entry: JournalEntry, path: string): Promise<void>
  /** Deletes the branch if it goes, else makes sure that the codebase's repository has it. Doing it twice is doing it once. */
  finishBranch(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: { readonly goes: boolean; readonly tip: Sha | undefined; readonly pointId: string },
  ): Promise<{ readonly deleted: boolean; readonly note?: BranchNote; readonly notices?: readonly Notice[] }>
  /** What is still there after a removal. */
  leftovers(codebase: Codebase, entry: JournalEntry): Promise<Notice[]>
}

export type Creation = {
  readonly context: IsolationContext
  readonly codebase: Codebase
  readonly checkout: CheckoutKind
  readonly kind: 'create' | 'restore'
  readonly environment: IsolatedEnvironment
  readonly plan: Plan
  readonly aliases: readonly Work[]
  readonly limit: number | undefined
  readonly useSpare: boolean
  /** The restore point that is being brought back. */
  readonly pointId?: string
  /** For the checkout; by default those that fit the plan's trust. */
  readonly settings?: readonly Setting[]
  readonly signal: AbortSignal | undefined
}

export type CreatedTree = { readonly tree: Tree; readonly entry: JournalEntry; readonly fromSpare: boolean }
