import type { Clock, Ids } from '../domain/clock.ts'
import type { RepoConfig } from '../domain/config/repository.ts'
import type { Settings } from '../domain/config/settings.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { BranchOutcome, RemovalReason } from '../domain/removal/branch-note.ts'
import type { LeftOut } from '../domain/removal/restore-point.ts'
import type { Logger } from '../process/log.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { Conversation, Store } from '../store/store.ts'
import type { Git } from './codebases/repo-of.ts'
import type { RepositoryLock } from './lock/lock.ts'
import type { IsolationProvider, Providers, RemoveOptions } from './provider.ts'

/** What every part of isolation stands on. `main.ts` is the only place that makes one. */
export type IsolationContext = {
  readonly store: Store
  readonly git: Git
  /** Who serves environments: `main.ts` names the members. */
  readonly providers: Providers<IsolationContext>
  readonly lock: RepositoryLock
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Logger
  /** What must not be said or kept. */
  readonly secrets: Secrets
  readonly settings: Settings
  /** An id kept in the home: a path means something on one host only. */
  readonly host: string
  readonly home: string
  /** Where new environments go; older ones may lie under another root. */
  readonly worktreesBase: string
  readonly self: ProcessIdentity
  /** The allow-listed environment for setup, teardown and agents. */
  readonly programEnvironment: Readonly<Record<string, string>>
  /** Our own variables. Of these an agent is given what its own list names, such as the key of its model. */
  readonly ownEnvironment?: Readonly<Record<string, string | undefined>>
  /** Each codebase's configuration at the base commit it was last read from: a fact about a commit, read once. */
  readonly repoConfigs: Map<string, { readonly sha: string; readonly config: RepoConfig }>
  /** Called with what we are waiting for, for anything that may take over a second. */
  readonly progress: (message: string) => void
  /** Asks a person whether these commands of the repository may run; undefined where nobody can be asked. */
  readonly approve: ((question: ApprovalQuestion) => Promise<boolean>) | undefined
  /**
   * Called inside the transaction that takes an environment from conversations, whoever removed it: what is recorded
   * there for them is recorded exactly if they lose it, also when a crash came between and recovery finished it.
   */
  readonly onEnvironmentLost: (store: Store, lost: LostEnvironment) => Promise<void>
  /** Deletes trash without keeping the caller waiting. */
  readonly deleteInBackground: (paths: readonly string[]) => void
  /** Named places between effects, where the crash suite ends the process. Does nothing in the product. */
  readonly failpoint: (name: string) => Promise<void>
}

/** A member of the seam. */
export type Provider = IsolationProvider<IsolationContext>

export type LostEnvironment = {
  readonly environment: IsolatedEnvironment
  readonly how: 'removed' | 'released'
  readonly conversations: readonly Conversation[]
  readonly askedBy: string | undefined
  readonly trigger: RemoveOptions['trigger']
  /** A string: an earlier version wrote down the words. */
  readonly why: RemovalReason | string
  /** What became of the branch; undefined where it was not asked about. */
  readonly branch: BranchOutcome | undefined
  /** What its restore point does not hold. */
  readonly leftOut: readonly LeftOut[]
}

export type ApprovalQuestion = {
  readonly codebase: string
  readonly commands: readonly string[]
  /** They also run, with the copied files, in the worktrees of forks. */
  readonly forks: boolean
}
