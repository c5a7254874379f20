import type { RepoConfig } from '../domain/config/repository.ts'
import type { BranchOrigin, Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import type { BranchName, EnvironmentId, Sha } from '../domain/names.ts'
import type { LeftAlone, Notice } from '../domain/notice.ts'
import type { Program } from '../domain/program.ts'
import type { ProviderName } from '../domain/provider-name.ts'
import type { Remedy } from '../domain/remedy.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import type { Repo, Tree } from '../domain/tree.ts'
import type { UncommittedWork } from '../domain/removal/uncommitted.ts'
import type { Doubt, Trust } from '../domain/trust.ts'
import type { Work } from '../domain/work.ts'
import type { JournalEntry, Store } from '../store/store.ts'
import type { Base } from './codebases/base-branch.ts'
import type { RemovableQuestion, RemoveOptions, RemoveOutcome } from './remove-outcome.ts'
import type { ResolveRequest } from './resolve/resolution.ts'

/** A request for one work's environment. The resolver has already decided which work it is. */
export type IsolationRequest = {
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  /** Used verbatim instead of the work's usual name. */
  readonly branch?: BranchName
  /** A ref to start from instead of the codebase's base. */
  readonly base?: string
  readonly createdBy: string
  /** For a persistent chat, whose environments are its user's own. */
  readonly persistent?: boolean
  /** Instead of the configured one; the repository may still ask for more separation. */
  readonly provider?: ProviderName | undefined
  /** Other identities that will also find this environment. */
  readonly aliases: readonly Work[]
  /** Why a pull request counts as a fork's although nobody said so. */
  readonly doubt?: Doubt | undefined
  /** May say that it belongs to other work. */
  readonly firstMessage?: string
  readonly signal?: AbortSignal
}

/** The same, with the base and the repository's configuration resolved. */
export type CreateRequest = Omit<IsolationRequest, 'base'> & {
  readonly base: Base
  readonly config: RepoConfig
  /** The base was named in the request, not the codebase's own. */
  readonly baseNamed: boolean
  /** Called when git has begun to write the files, so that other reading costs no time. May be called again. */
  readonly whileWriting?: () => void
}

export type Created = {
  readonly outcome: 'created'
  readonly environment: IsolatedEnvironment
  /** Offline, diverged, setup not approved, … */
  readonly notices: readonly Notice[]
  /** Made from a warm spare. */
  readonly fromSpare: boolean
}
/** Another caller made it while we waited. */
export type Existing = {
  readonly outcome: 'existing'
  readonly environment: IsolatedEnvironment
  /** What was recovered while we waited. */
  readonly notices?: readonly Notice[]
}
export type LimitReached = { readonly outcome: 'limit'; readonly active: number; readonly limit: number }

export type Restored = {
  readonly environment: IsolatedEnvironment
  readonly notices: readonly Notice[]
}

/**
 * Is the environment there, and still this very instance? A directory that is there but isn't ours is neither missing
 * nor ours: leave it alone.
 */
export type Presence =
  | { readonly state: 'present'; readonly tree: Tree }
  /** Somebody moved it: it is whole, at the tree's path. `followMoves` records that. */
  | { readonly state: 'moved'; readonly tree: Tree; readonly detail: string }
  | { readonly state: 'missing' }
  /** `file`: the one that we couldn't read. */
  | { readonly state: 'not-ours' | 'cannot-tell'; readonly detail: string; readonly file?: string | undefined }

/** A worktree in git's own list. */
export type GitWorktree = {
  readonly path: string
  readonly branch: string | undefined
  /** Git's reason for the lock; may be empty. */
  readonly locked?: string
  /** Its directory is gone. */
  readonly missing?: true
  /** Coppice made it with another home, which may delete it. */
  readonly otherHome?: { readonly home: string | undefined; readonly remedy: Remedy }
  /** What it is to Coppice; undefined: nothing, it is an orphan. */
  readonly tracked?:
    | { readonly as: 'environment'; readonly environment: IsolatedEnvironment }
    /**
     * `main`: the main working tree, or the bare repository. `spare`: being prepared, created or removed. `copy`: a
     * record that came with a copied repository; the worktree belongs to the original. `broken`: git can't use it.
     */
    | { readonly as: 'main' | 'spare' | 'copy' | 'broken' }
}

/** A checkout of the codebase that a person or another tool made and no live record has. Never deleted. */
export type Orphan = Omit<GitWorktree, 'tracked'>

/** What this request can use instead of a new environment. */
export type Adoptable =
  | { readonly kind: 'untracked'; readonly path: string }
  /** Its branch is already checked out in another work's environment, which is shared. */
  | { readonly kind: 'environment'; readonly environment: IsolatedEnvironment }

/** The environment as it is now, after its branch was renamed. */
export type FollowedRename = { readonly environment: IsolatedEnvironment; readonly notices: readonly Notice[] }

export type FollowedHead = {
  readonly notices: readonly Notice[]
  /** The tree is known to be at the head that was named. False also if none was named. */
  readonly current: boolean
  /** The commit checked out, if that is known without asking git. */
  readonly at?: Sha
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
  /** It stays interrupted for now, for this reason. */
  | { readonly outcome: 'left'; readonly why: LeftAlone }
  /** It is over, but what it was making stays at its path: it was moved, or holds what can't be saved. */
  | { readonly outcome: 'left-to-user' }

export type TrustOptions = {
  /** The commit that the person saw checked out. If it is another one now, it isn't trusted. */
  readonly seen?: Sha | undefined
  readonly signal?: AbortSignal | undefined
}

/** What it got, besides trust, when somebody vouched for it. */
export type TrustOutcome = {
  readonly wasTrusted: boolean
  /** The commit checked out and trusted now; undefined if it was trusted before and wasn't checked. */
  readonly commit: Sha | undefined
  readonly copied: number
  readonly linked: number
  readonly ranSetup: boolean
  readonly notices: readonly Notice[]
}

/**
 * How an environment is created, inspected and removed. An environment's row names its provider. Providers hold no
 * state: all they need, other providers included, is in the context. One conformance suite covers all of them.
 */
export type IsolationProvider<Context> = {
  readonly name: string
  readonly can: {
    /** Track a checkout that a person or another tool made. */
    readonly adopt: boolean
    /** Prepare checkouts ahead, so that the next environment is ready at once. */
    readonly keepSpares: boolean
  }

  create(context: Context, request: CreateRequest): Promise<Created | Existing | LimitReached>
  adopt(context: Context, codebase: Codebase, path: string, request: AdoptRequest): Promise<IsolatedEnvironment>
  /** What `adopt` would record. Throws why it would refuse. Changes nothing. */
  examine(context: Context, codebase: Codebase, path: string, request: ExamineRequest): Promise<Examined>
  destroy(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: RemoveOptions,
  ): Promise<RemoveOutcome>
  /** The first reasons not to remove it; none if every gate passes. Changes nothing and takes no lock. */
  whyNotRemovable(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    question: RemovableQuestion,
  ): Promise<readonly GateAnswer[]>
  /** `lookAgain` selects the restore point again under the lock. If omitted, `point` is used. */
  restore(
    context: Context,
    codebase: Codebase,
    point: RestorePoint,
    lookAgain?: () => Promise<RestorePoint>,
  ): Promise<Restored>
  /**
   * Call with the lock held. Saves what git still has of a missing environment, so that its work can get a new one.
   * Returns notices for the user.
   */
  forgetMissing(context: Context, codebase: Codebase, missing: IsolatedEnvironment): Promise<readonly Notice[]>
  /** Gives an environment what it was denied while untrusted. */
  trust(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: TrustOptions,
  ): Promise<TrustOutcome>
  /** Whether somebody vouched for the commit that is checked out now. */
  isVouched(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    options: { readonly signal?: AbortSignal | undefined },
  ): Promise<boolean>

  /** Finishes or undoes an interrupted operation, with the lock held. */
  recover(context: Context, codebase: Codebase, entry: JournalEntry): Promise<SettledEntry>
  /** Repairs, at startup, what only this provider keeps beside its environments. */
  tidy(context: Context, codebase: Codebase): Promise<void>
  /** The codebase's repository was moved: updates everything that names it by path. */
  repositoryMoved(context: Context, from: Codebase, to: Codebase): Promise<void>
  /** Prepares as many checkouts as the settings say. Returns how many it made. */
  keepSpares(context: Context, codebase: Codebase): Promise<number>
  /** Deletes the codebase's spares. */
  dropSpares(context: Context, codebase: Codebase): Promise<void>

  /** Deletes a restore point. Idempotent. */
  discardPoint(context: Context, codebase: Codebase, id: string): Promise<void>
  /** Whether the repository still has this point's commits. */
  isRestorable(context: Context, codebase: Codebase, point: RestorePoint): Promise<boolean>

  /** Starts no process: this runs on every message. */
  presence(codebase: Codebase, environment: IsolatedEnvironment): Promise<Presence>
  /** The environment whose token is on the directory at `path`, whatever path its row has. */
  environmentAt(context: Context, codebase: Codebase, path: string): Promise<IsolatedEnvironment | undefined>
  /** Our finished checkout at `path`, with or without a row. Undefined if there is none. Starts no process. */
  identify(context: Context, path: string): Promise<Identified | undefined>
  /** Inserts a new row for a checkout that lost its row. Throws if it isn't proven to be the repository's own. */
  recall(context: Context, codebase: Codebase, found: Identified, request: RecallRequest): Promise<IsolatedEnvironment>
  /** The path in its own record, if it has one apart from its directory. */
  recordedPath(codebase: Codebase, environment: IsolatedEnvironment): Promise<string | undefined>
  /** Sets the author and committer of commits in this checkout only. */
  setAuthor(context: Context, codebase: Codebase, tree: Tree, author: Author): Promise<void>
  /** The branch checked out there now. */
  headBranch(tree: Tree): Promise<string | undefined>
  /** The ref in the codebase's repository that holds the environment's commits. */
  tipRef(environment: IsolatedEnvironment): string
  /** The repository with its refs, reflogs, configuration and hooks, if separate from the codebase's. */
  ownRepository(environment: IsolatedEnvironment): Repo | undefined
  /**
   * Updates `tipRef` of each. Returns, for those that failed, why. Starts a process only if something was committed
   * since.
   */
  importCommits(
    context: Context,
    codebase: Codebase,
    environments: readonly IsolatedEnvironment[],
  ): Promise<ReadonlyMap<EnvironmentId, string>>
  glance(context: Context, tree: Tree, options: { readonly signal?: AbortSignal | undefined }): Promise<Glance>

  /** Branches get renamed under their environments, by agents too. A dry run records nothing. */
  followRenames(
    context: Context,
    codebase: Codebase,
    environments: readonly IsolatedEnvironment[],
    options?: { readonly dryRun?: boolean | undefined },
  ): Promise<FollowedRename[]>
  /** The head of its pull request moved. */
  followHead(
    context: Context,
    codebase: Codebase,
    environment: IsolatedEnvironment,
    work: Work,
    hints: IsolationHints,
    options: { readonly signal?: AbortSignal | undefined },
  ): Promise<FollowedHead>

  findAdoptable(context: Context, request: ResolveRequest): Promise<Adoptable | undefined>
  /** All worktrees that git lists for the codebase; none if this provider's environments aren't among them. */
  gitWorktrees(context: Context, codebase: Codebase): Promise<GitWorktree[]>

  /** Shows other tools that the environment is in use. False: another tool holds the lock, which is theirs. */
  lock(tree: Tree, reason: string): Promise<boolean>
  unlock(tree: Tree, reason: string): Promise<void>
  lockReason(tree: Tree): Promise<string | undefined>
  /** One stat only: this runs for every environment at every start. */
  mayBeLocked(codebase: Codebase, environment: IsolatedEnvironment): boolean

  /**
   * How to start a program in it. If that wraps it, as a container would, the program needs there, at the same paths: the
   * home's `context/` and `attachments/`, the `coppice` in `fleet/bin/`, and for an agent of the fleet `messages/`,
   * `answers/` and `requests/` (with a FIFO) in its directory. `COPPICE_URL` has to reach our loopback address. From
   * outside, /proc has to show its processes, their files and their variables, since a run's are found by COPPICE_RUN.
   */
  launch(environment: IsolatedEnvironment, program: Program): Program
}

/** Providers by the name used in rows and settings. Each is loaded when first needed. */
export type Providers<Context> = ReadonlyMap<string, () => Promise<IsolationProvider<Context>>>

export type ExamineRequest = Pick<AdoptRequest, 'work' | 'forFork'> & {
  /** Git's record of it, as in `AdoptRequest.relink`. */
  readonly adminDir?: string
}

/** A worktree that can be adopted. */
export type Examined = {
  readonly branch: BranchName
  readonly tree: Tree
  readonly trust: Trust
}

/** A checkout with our token, whose row may have been lost with the database. */
export type Identified = {
  readonly id: EnvironmentId
  readonly tree: Tree
  /** The git directory of its repository. */
  readonly repoPath: string
}

export type Author = { readonly name: string; readonly email: string }

export type RecallRequest = {
  readonly work: Work
  readonly createdBy: string
  /** In the transaction that gives it a row: what must be recorded with it, or not at all. */
  readonly record?: (store: Store, environment: IsolatedEnvironment) => Promise<void>
}

export type AdoptRequest = {
  readonly work?: Work
  readonly createdBy: string
  readonly aliases: readonly Work[]
  /** A person claims it as theirs: then even one that Coppice made is never deleted. */
  readonly claim?: true
  /** The pull request may come from a fork, so the worktree is not trusted either. */
  readonly forFork?: boolean
  /** When another tool made and last used it (default: now). */
  readonly age?: { readonly createdAt: number; readonly lastActivityAt: number }
  /** Its maker hands it over: Coppice removes it like one of its own. Applies to one adopted earlier, too. */
  readonly own?: { readonly branchOrigin: BranchOrigin }
  /**
   * Git's record of it. Record and directory belong together, but name each other by the paths of another machine, such
   * as a container: makes them name each other by these.
   */
  readonly relink?: string | undefined
}
