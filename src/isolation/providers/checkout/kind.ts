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

/** What happened to work that someone did in a half-made environment. */
export type Salvaged = 'nothing' | 'saved' | 'cannot-keep'

export type Undone =
  | { readonly outcome: 'undone'; readonly work: Salvaged }
  | { readonly outcome: 'left'; readonly why: LeftAlone }

/**
 * `just-failed`: it failed in this process, which has awaited its children. `after-crash`: children may still run. In
 * both cases others may have worked in it: the repository's lock keeps nobody out of the directory.
 */
export type UndoWhen = 'just-failed' | 'after-crash'

/** Why it stays as it is for now. */
export type NotUndone = { readonly left: LeftAlone }

export type CreationUndo = {
  readonly codebase: Codebase
  readonly entry: JournalEntry
  readonly data: CreationRecord
}

/** How the kinds of checkout differ when undoing a creation. */
export type UndoSteps = {
  /** A git that a crash left running in it, besides the repository's; for display. */
  stillRunning(context: IsolationContext, data: CreationRecord): Promise<string | undefined>
  /** Where its directory may be. */
  paths(data: CreationRecord): readonly string[]
  /** Saves what others did in it, and removes its directory. */
  takeBack(context: IsolationContext, undoing: CreationUndo): Promise<Salvaged | NotUndone>
  /** Deletes the refs created for it. */
  dropRefs(context: IsolationContext, undoing: CreationUndo, saved: Salvaged): Promise<void>
}

/** The parts of a CheckoutKind that writing a restore point needs. */
export type RestorePointSource = Pick<CheckoutKind, 'isWhole' | 'tipsToKeep' | 'ownWork' | 'importCommit' | 'madeOn'>

/** Commits that a restore point must reach, and the names they had, as in git's `packed-refs`. */
export type HeldForMissing = {
  readonly tip: Sha | undefined
  readonly commits: readonly Sha[]
  readonly packedRefs: string
  readonly madeOn: string | undefined
}

/**
 * Creating, removing and restoring work the same way for every kind of checkout. This is what differs: where git keeps
 * its record, and how the commits get to the codebase's repository.
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

  /** Undefined: no spares. */
  readonly spares:
    | {
        /** Removes the row and, in the same transaction, records the directory's new owner. */
        claim(store: Store, spare: Spare, entryId: string): Promise<boolean>
        /** Undefined if the spare can't be used: then create from scratch. */
        take(creation: Creation, entry: JournalEntry, spare: Spare): Promise<Tree | undefined>
      }
    | undefined
  /** Git's part of a creation, under the repository's lock, after row and intent. The directory exists and is empty. */
  add(creation: Creation, onSpawn: (identity: ProcessIdentity) => void): Promise<Tree>
  /** Removes the "being created" markers. Returns the fields to store in the row. */
  ready(tree: Tree, environment: IsolatedEnvironment): Promise<{ readonly adminName: string | undefined }>
  readonly undo: UndoSteps
  /** Whether git can read the checkout; false if it was killed while creating it. */
  isWhole(tree: Tree): Promise<boolean>

  unreachable(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    tree: Tree,
  ): Promise<Unreachable[]>
  /** What git still has of one whose directory is missing; undefined if nothing. */
  treeOfMissing(codebase: Codebase, environment: IsolatedEnvironment): Promise<Tree | undefined>
  /** What the codebase's repository holds for one that has neither a directory nor a record. */
  heldForMissing(
    context: IsolationContext,
    codebase: Codebase,
    environment: IsolatedEnvironment,
  ): Promise<HeldForMissing | undefined>
  /** Commits that a restore point must reach, besides HEAD, the branch and those only in reflogs. */
  tipsToKeep(context: IsolationContext, codebase: Codebase, tree: Tree): Promise<readonly Sha[]>
  /** Names of anything but commits that someone made in the checkout's own git directory. */
  ownWork(context: IsolationContext, codebase: Codebase, tree: Tree): Promise<readonly string[]>
  /** The branch it was created on, if an agent can rename that without the repository knowing. */
  madeOn(context: IsolationContext, codebase: Codebase, environment: IsolatedEnvironment): Promise<string | undefined>
  /** Copies everything this commit reaches to the codebase's repository. */
  importCommit(context: IsolationContext, codebase: Codebase, tree: Tree, commit: Sha): Promise<void>
  /** Restores git's own files of the checkout from a restore point. */
  restoreGitFiles(saved: string, tree: Tree, leftOut: LeftOut[]): Promise<void>

  /**
   * The removal's point of no return: deletes what git has of the checkout outside its directory. `tree` is undefined
   * if there is neither a directory nor a record.
   */
  forget(context: IsolationContext, codebase: Codebase, entryId: string, tree: Tree | undefined): Promise<void>
  /** After a crash: was that point passed? If so, finishes it. */
  isForgotten(context: IsolationContext, codebase: Codebase, entry: JournalEntry): Promise<boolean>
  /** The directory is back, perhaps at another path. */
  putBack(codebase: Codebase, entry: JournalEntry, path: string): Promise<void>
  /** Deletes the branch if it goes, else makes sure that the codebase's repository has it. Idempotent. */
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
  /** The restore point being restored. */
  readonly pointId?: string
  /** For the checkout; by default those for the plan's trust. */
  readonly settings?: readonly Setting[]
  readonly whileWriting?: (() => void) | undefined
  readonly signal: AbortSignal | undefined
}

export type CreatedTree = { readonly tree: Tree; readonly entry: JournalEntry; readonly fromSpare: boolean }
