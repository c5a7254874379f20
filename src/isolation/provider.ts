import type { RepoConfig } from '../domain/config/repository.ts'
import type { RemoveTrigger } from '../domain/journal-data.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { Merged, StaleBase } from '../domain/merge-proof.ts'
import type { BranchName, EnvironmentId, Sha } from '../domain/names.ts'
import type { LeftAlone, Notice } from '../domain/notice.ts'
import type { Program } from '../domain/program.ts'
import type { Remedy } from '../domain/remedy.ts'
import type { BranchNote, RemovalReason } from '../domain/removal/branch-note.ts'
import type { LeftOut, RestorePoint } from '../domain/removal/restore-point.ts'
import type { Repo, Tree } from '../domain/tree.ts'
import type { UncommittedWork } from '../domain/removal/uncommitted.ts'
import type { Doubt } from '../domain/trust.ts'
import type { Work } from '../domain/work.ts'
import type { Conversation, JournalEntry } from '../store/store.ts'
import type { Base } from './codebases/base-branch.ts'
import type { ResolveRequest } from './resolution.ts'

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
  readonly doubt?: Doubt | undefined
  readonly signal?: AbortSignal
}

/** The same, once it is known where to start and how the repository is configured. */
export type CreateRequest = Omit<IsolationRequest, 'base'> & {
  readonly base: Base
  readonly config: RepoConfig
  /** The base was named in the request, not the codebase's own. */
  readonly baseNamed: boolean
}

export type Created = {
  readonly outcome: 'created'
  readonly environment: IsolatedEnvironment
  /** Offline, diverged, setup not approved, … */
  readonly notices: readonly Notice[]
  /** A warm spare served. */
  readonly fromSpare: boolean
}
/** Somebody made it while we waited for the lock. */
export type Existing = {
  readonly outcome: 'existing'
  readonly environment: IsolatedEnvironment
  /** What was recovered while we waited. */
  readonly notices?: readonly Notice[]
}
export type LimitReached = { readonly outcome: 'limit'; readonly active: number; readonly limit: number }

export type RemoveOptions = {
  readonly force?: boolean
  readonly trigger: RemoveTrigger
  /** For those who used it (default: what the trigger says). */
  readonly why?: RemovalReason
  /** The conversation that asks does not hold the environment against itself. */
  readonly askedBy?: string
  readonly dryRun?: boolean
  /** Why base may be out of date, from a caller that has fetched: then no branch is deleted as merged. */
  readonly staleBase?: StaleBase | undefined
  readonly signal?: AbortSignal
}

export type Removed = {
  readonly outcome: 'removed'
  readonly environment: IsolatedEnvironment
  readonly restorePoint: RestorePoint | undefined
  readonly branchDeleted: boolean
  /** Why the branch stayed or went. A string: an earlier version wrote down the words. */
  readonly branchNote: BranchNote | string
  readonly leftOut: readonly LeftOut[]
  /** Conversations that were detached and must be notified. */
  readonly detachedConversations: readonly Conversation[]
  readonly notices: readonly Notice[]
}
/** An adopted environment is no longer tracked: nothing on disk changed. */
export type Released = {
  readonly outcome: 'released'
  readonly environment: IsolatedEnvironment
  readonly detachedConversations: readonly Conversation[]
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
  readonly notices: readonly Notice[]
}

/**
 * Is the environment really there, and still this very instance? A directory that is there but is not ours is neither
 * missing nor ours: nothing may be done with it.
 */
export type Presence =
  | { readonly state: 'present'; readonly tree: Tree }
  /** Somebody moved it: it is whole, at the tree's path. `followMoves` records that. */
  | { readonly state: 'moved'; readonly tree: Tree; readonly detail: string }
  | { readonly state: 'missing' }
  /** `file`: the one that kept us from looking. */
  | { readonly state: 'not-ours' | 'cannot-tell'; readonly detail: string; readonly file?: string | undefined }

/** A checkout of the codebase that a person or another tool made and that no live record knows. Never deleted. */
export type Orphan = {
  readonly path: string
  readonly branch: string | undefined
  /** The reason git has for its lock; may be empty. */
  readonly locked?: string
  /** Its directory is gone. */
  readonly missing?: true
  /** Coppice made it with another home, which may delete it. */
  readonly otherHome?: { readonly home: string | undefined; readonly remedy: Remedy }
}

/** What an environment for this request can be instead of a new one. */
export type Adoptable =
  | { readonly kind: 'untracked'; readonly path: string }
  /** Its branch is checked out in an environment of another work already: that one is shared. */
  | { readonly kind: 'environment'; readonly environment: IsolatedEnvironment }

/** The environment as it is now, after its branch was renamed under it. */
export type FollowedRename = { readonly environment: IsolatedEnvironment; readonly notices: readonly Notice[] }

export type FollowedHead = {
  readonly notices: readonly Notice[]
  /** The tree is known to have the head that was named. False also where none was named. */
  readonly current: boolean
}

/** What its files hold, for a list. */
export type Glance = {
  readonly dirty: UncommittedWork
  /** Commits on a detached HEAD that no branch has. */
  readonly detached: number
}

/** What became of an interrupted operation. */
export type SettledEntry =
  | { readonly outcome: 'settled' }
  /** It stays interrupted for now, and this is why. */
  | { readonly outcome: 'left'; readonly why: LeftAlone }
  /** It is over, and what it was making stays at its path: it was moved, or holds what can't be saved. */
  | { readonly outcome: 'left-to-user' }

export type TrustOptions = {
  /** The commit that was checked out when the person said so. If another one is by now, it is not trusted. */
  readonly seen?: Sha | undefined
  readonly signal?: AbortSignal | undefined
}

/** What it got when somebody vouched for it, besides the trust. */
export type TrustOutcome = {
  readonly wasTrusted: boolean
  /** The one that is checked out and trusted now; undefined where it was trusted before and nobody looked. */
  readonly commit: Sha | undefined
  readonly copied: number
  readonly linked: number
  readonly ranSetup: boolean
  readonly notices: readonly Notice[]
}

/**
 * The seam: how an environment is made, looked at and taken away. The row of an environment says which member serves it.
 * Members hold no state: whatever they need is in the context, the other members included. One conformance suite over
 * all of them.
 */
export type IsolationProvider<Context> = {
  readonly name: string
  readonly can: {
    /** Track a checkout that a person or another tool made. */
    readonly adopt: boolean
    /** Prepare checkouts ahead, so that the next environment is there at once. */
    readonly keepSpares: boolean
  }

  create(context: Context, request: CreateRequest): Promise<Created | Existing | LimitReached>
  adopt(context: Context, codebase: Codebase, path: string, request: AdoptRequest): Promise<IsolatedEnvironment>
  destroy(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: RemoveOptions,
  ): Promise<RemoveOutcome>
  /** `lookAgain`: whatever led to this point, asked once more when nobody else can add one. Without it: this very one. */
  restore(
    context: Context,
    codebase: Codebase,
    point: RestorePoint,
    lookAgain?: () => Promise<RestorePoint>,
  ): Promise<Restored>
  /**
   * Under the repository's lock: its directory is away and its work is taken up anew. What git still knows is saved.
   * Answers what the user should know.
   */
  forgetMissing(context: Context, codebase: Codebase, missing: IsolatedEnvironment): Promise<readonly Notice[]>
  /** Gives an environment what it was denied while it was not trusted. */
  trust(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: TrustOptions,
  ): Promise<TrustOutcome>
  /** Whether somebody has vouched for the commit that is checked out now. */
  isVouched(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: { readonly signal?: AbortSignal | undefined },
  ): Promise<boolean>

  /** Finishes or undoes what a crash interrupted, under the repository's lock. */
  recover(context: Context, codebase: Codebase, entry: JournalEntry): Promise<SettledEntry>
  /** Puts right, at a start, what only this member keeps beside its environments. */
  tidy(context: Context, codebase: Codebase): Promise<void>
  /** The codebase's repository is at another place: whatever names it by its path is written anew. */
  repositoryMoved(context: Context, from: Codebase, to: Codebase): Promise<void>
  /** Prepares checkouts ahead, as many as the settings say. Answers how many it made. */
  keepSpares(context: Context, codebase: Codebase): Promise<number>
  /** Its spares go, with the codebase. */
  dropSpares(context: Context, codebase: Codebase): Promise<void>

  /** Takes a restore point away. Doing it twice is doing it once. */
  discardPoint(context: Context, codebase: Codebase, id: string): Promise<void>
  /** Whether the repository still holds what this point stands for. */
  isRestorable(context: Context, codebase: Codebase, point: RestorePoint): Promise<boolean>

  /** Starts no program: this runs on every message. */
  presence(codebase: Codebase, environment: IsolatedEnvironment): Promise<Presence>
  /** The environment whose mark is on the directory at `path`, wherever its row says it is. */
  environmentAt(context: Context, codebase: Codebase, path: string): Promise<IsolatedEnvironment | undefined>
  /** Where its own record, if it has one apart from its directory, says that it is. */
  recordedPath(codebase: Codebase, environment: IsolatedEnvironment): Promise<string | undefined>
  /** The branch that is checked out there now. */
  headBranch(tree: Tree): Promise<string | undefined>
  /** The ref of the codebase's repository that holds what the environment committed. */
  tipRef(environment: IsolatedEnvironment): string
  /** The repository with its refs, reflogs, configuration and hooks, if it shares none of them with the codebase's. */
  ownRepository(environment: IsolatedEnvironment): Repo | undefined
  /**
   * Makes `tipRef` current for each of these, and answers why it could not for some. Starts a program only where
   * something was committed since.
   */
  importCommits(
    context: Context,
    codebase: Codebase,
    environments: readonly IsolatedEnvironment[],
  ): Promise<ReadonlyMap<EnvironmentId, string>>
  glance(context: Context, tree: Tree, options: { readonly signal?: AbortSignal | undefined }): Promise<Glance>

  /** A branch can be renamed under its environment, and agents do. A dry run records nothing. */
  followRenames(
    context: Context,
    codebase: Codebase,
    environments: readonly IsolatedEnvironment[],
    options?: { readonly dryRun?: boolean | undefined },
  ): Promise<FollowedRename[]>
  /** The head of its pull request has moved. */
  followHead(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    work: Work,
    hints: IsolationHints,
    options: { readonly signal?: AbortSignal | undefined },
  ): Promise<FollowedHead>

  findAdoptable(context: Context, request: ResolveRequest): Promise<Adoptable | undefined>
  orphans(context: Context, codebase: Codebase): Promise<Orphan[]>

  /** What other tools see while somebody uses the environment. False: another tool holds it, and the lock is theirs. */
  lock(tree: Tree, reason: string): Promise<boolean>
  unlock(tree: Tree, reason: string): Promise<void>
  lockReason(tree: Tree): Promise<string | undefined>
  /** A look at one name: this runs for every environment at every start. */
  mayBeLocked(codebase: Codebase, environment: IsolatedEnvironment): boolean

  /** How a program is started in it. */
  launch(environment: IsolatedEnvironment, program: Program): Program
}

/** The members, by the name that rows and settings use. Each is loaded when it is first needed. */
export type Providers<Context> = ReadonlyMap<string, () => Promise<IsolationProvider<Context>>>

export type AdoptRequest = {
  readonly work?: Work
  readonly createdBy: string
  readonly aliases: readonly Work[]
  /** A person says that it is theirs: an environment that Coppice made is then never deleted either. */
  readonly claim?: true
  /** It is for a pull request that is not proven to be the repository's own: then its worktree is not either. */
  readonly forFork?: boolean
}
