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
import type { Forge } from './forge.ts'
import type { IsolationProvider, Providers } from './provider.ts'
import type { RemoveOptions } from './remove-outcome.ts'

/** Dependencies of the isolation module. Created only in `main.ts`. */
export type IsolationContext = {
  readonly store: Store
  readonly git: Git
  /** Registered in `main.ts`. */
  readonly providers: Providers<IsolationContext>
  readonly lock: RepositoryLock
  /** The code host, which knows what it merged; undefined if there is none to ask. */
  readonly forge?: Forge | undefined
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Logger
  /** Must not be shown or stored. */
  readonly secrets: Secrets
  readonly settings: Settings
  /** An id kept in the home: a path is only meaningful on one host. */
  readonly host: string
  readonly home: string
  /** Where new environments go; older ones may be under another root. */
  readonly worktreesBase: string
  readonly self: ProcessIdentity
  /** The allow-listed environment for setup, teardown and agents. */
  readonly programEnvironment: Readonly<Record<string, string>>
  /** Our own variables. An agent gets only those that its own list names, such as its model's API key. */
  readonly ownEnvironment?: Readonly<Record<string, string | undefined>>
  /** Each codebase's configuration at the base commit it was last read at: fixed per commit, so read once. */
  readonly repoConfigs: Map<string, { readonly sha: string; readonly config: RepoConfig; readonly stamp?: string }>
  /** Called with what we are waiting for, if that may take over a second. */
  readonly progress: (message: string) => void
  /** Asks a person whether these commands of the repository may run; undefined if there is nobody to ask. */
  readonly approve: ((question: ApprovalQuestion) => Promise<boolean>) | undefined
  /**
   * Called inside the transaction that detaches an environment from its conversations, whoever removed it. What it
   * records there commits only if they lose the environment, even if recovery finishes the removal after a crash.
   */
  readonly onEnvironmentLost: (store: Store, lost: LostEnvironment) => Promise<void>
  /** Deletes trash without keeping the caller waiting. */
  readonly deleteInBackground: (paths: readonly string[]) => void
  /** Named points between effects, where the crash suite kills the process. Does nothing in production. */
  readonly failpoint: (name: string) => Promise<void>
}

export type Provider = IsolationProvider<IsolationContext>

export type LostEnvironment = {
  readonly environment: IsolatedEnvironment
  readonly how: 'removed' | 'released'
  readonly conversations: readonly Conversation[]
  readonly askedBy: string | undefined
  readonly trigger: RemoveOptions['trigger']
  /** A string if an earlier version wrote it. */
  readonly why: RemovalReason | string
  /** What happened to the branch; undefined if not determined. */
  readonly branch: BranchOutcome | undefined
  /** What its restore point leaves out. */
  readonly leftOut: readonly LeftOut[]
}

export type ApprovalQuestion = {
  readonly codebase: string
  readonly commands: readonly string[]
  /** They also run, with the copied files, in forks' worktrees. */
  readonly forks: boolean
}
