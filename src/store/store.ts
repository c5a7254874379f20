import type { Codebase, EnvironmentStatus, IsolatedEnvironment } from '../domain/environment.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { CodebaseId, EnvironmentId, Sha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { RestorePoint } from '../domain/restore-point.ts'
import type { Work } from '../domain/work.ts'

/** One interface, two engines; the same statements and the same conformance suite over both. */
export type Store = {
  readonly engine: 'sqlite' | 'postgres'
  readonly codebases: CodebaseStore
  readonly environments: EnvironmentStore
  readonly conversations: ConversationStore
  readonly restorePoints: RestorePointStore
  readonly leases: LeaseStore
  readonly journal: JournalStore
  readonly spares: SpareStore
  readonly ports: PortStore
  readonly mergeAnswers: MergeAnswerStore
  readonly events: EventStore
  /** Everything `work` does through the given store happens or none of it. Nested calls join the outer one. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export type CodebasePatch = Partial<
  Pick<
    Codebase,
    'remote' | 'remoteUrl' | 'baseBranch' | 'github' | 'defaultAgent' | 'trustedConfig' | 'fetchedAt' | 'checkoutPath'
  >
>

export type CodebaseStore = {
  /** False when (host, name) or (host, repoPath) is taken. */
  insert(codebase: Codebase): Promise<boolean>
  get(id: CodebaseId): Promise<Codebase | undefined>
  byName(host: string, name: string): Promise<Codebase | undefined>
  byRepoPath(host: string, repoPath: string): Promise<Codebase | undefined>
  list(host: string): Promise<Codebase[]>
  update(id: CodebaseId, patch: CodebasePatch): Promise<void>
  remove(id: CodebaseId): Promise<void>
}

export type InsertOutcome =
  | { readonly outcome: 'inserted' }
  /** Another live environment has the same work, branch or path. */
  | { readonly outcome: 'conflict'; readonly on: 'work' | 'branch' | 'path' }
  /** `active` counts creating, active and removing ones of the codebase. */
  | { readonly outcome: 'limit'; readonly active: number }

export type EnvironmentPatch = Partial<
  Pick<
    IsolatedEnvironment,
    | 'path'
    | 'branch'
    | 'branchOrigin'
    | 'startSha'
    | 'adminName'
    | 'lastActivityAt'
    | 'prBranch'
    | 'prNumber'
    | 'baseBranch'
  >
>

export type EnvironmentStore = {
  /** Count and insert are one transaction, so that a limit holds across processes. No limit: `undefined`. */
  insert(environment: IsolatedEnvironment, limit: number | undefined): Promise<InsertOutcome>
  get(id: EnvironmentId): Promise<IsolatedEnvironment | undefined>
  /** The live environment of a work, by its own identity or by an alias. One statement. */
  liveByWork(codebaseId: CodebaseId, work: Work): Promise<IsolatedEnvironment | undefined>
  liveByBranch(codebaseId: CodebaseId, branch: string): Promise<IsolatedEnvironment | undefined>
  liveByPath(host: string, path: string): Promise<IsolatedEnvironment | undefined>
  live(codebaseId: CodebaseId): Promise<IsolatedEnvironment[]>
  update(id: EnvironmentId, patch: EnvironmentPatch): Promise<void>
  /** Checked against the transition table; false when the row is no longer `from` (someone else was faster). */
  transition(
    id: EnvironmentId,
    from: EnvironmentStatus,
    to: EnvironmentStatus,
    patch?: EnvironmentPatch,
  ): Promise<boolean>
  /** Deletes the row of a creation that was undone; only ever a `creating` one. */
  forgetCreating(id: EnvironmentId): Promise<void>
  addAlias(id: EnvironmentId, codebaseId: CodebaseId, work: Work, at: number): Promise<boolean>
  aliases(id: EnvironmentId): Promise<Work[]>
  aliasesOf(ids: readonly EnvironmentId[]): Promise<Map<EnvironmentId, Work[]>>
  /** Aliases go when their environment does, so that the work can be taken up again. */
  dropAliases(id: EnvironmentId): Promise<void>
}

/** `conversationId` is the platform's own id; (platform, conversationId) is unique. */
export type Conversation = {
  readonly id: string
  readonly platform: string
  readonly conversationId: string
  readonly codebaseId: CodebaseId | undefined
  readonly environmentId: EnvironmentId | undefined
  /** Telegram and its like: the environment is the user's own, no automation removes it. */
  readonly persistent: boolean
  readonly lastActivityAt: number
  readonly closedAt: number | undefined
  readonly createdAt: number
}

export type ConversationStore = {
  /** Creates it or returns the one that is there. */
  ensure(conversation: Conversation): Promise<Conversation>
  find(platform: string, conversationId: string): Promise<Conversation | undefined>
  update(
    id: string,
    patch: Partial<Pick<Conversation, 'codebaseId' | 'environmentId' | 'lastActivityAt' | 'closedAt'>>,
  ): Promise<void>
  /** All conversations that point at one of these environments. One statement. */
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Conversation[]>
  /** Clears the reference in every conversation of this environment and returns those that had it. */
  letGo(id: EnvironmentId): Promise<Conversation[]>
}

export type RestorePointStore = {
  insert(point: RestorePoint): Promise<void>
  get(id: string): Promise<RestorePoint | undefined>
  /** Newest first. */
  list(codebaseId: CodebaseId): Promise<RestorePoint[]>
  expired(host: string, now: number): Promise<RestorePoint[]>
  remove(id: string): Promise<void>
}

/** Somebody uses the environment now. Dead holders are found by their identity, never by a time-out. */
export type Lease = {
  readonly id: string
  readonly host: string
  readonly environmentId: EnvironmentId
  readonly purpose: string
  readonly holder: ProcessIdentity
  readonly createdAt: number
}

export type LeaseStore = {
  insert(lease: Lease): Promise<void>
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Lease[]>
  all(host: string): Promise<Lease[]>
  remove(id: string): Promise<void>
}

export type JournalKind = 'create' | 'remove' | 'restore' | 'spare' | 'clone'

/** An intent: written before the effect, deleted after the result is recorded. */
export type JournalEntry = {
  readonly id: string
  readonly host: string
  readonly codebaseId: CodebaseId | undefined
  readonly environmentId: EnvironmentId | undefined
  readonly kind: JournalKind
  readonly step: string
  /** What reconciliation needs to finish or undo it; plain JSON. */
  readonly data: Readonly<Record<string, unknown>>
  readonly holder: ProcessIdentity
  /** A git process of ours that may outlive us. */
  readonly child: ProcessIdentity | undefined
  readonly startedAt: number
}

export type JournalStore = {
  begin(entry: JournalEntry): Promise<void>
  /** Moves on to `step`; `data` is merged into what is there; `child: null` clears it. */
  advance(
    id: string,
    change: { step?: string; data?: Record<string, unknown>; child?: ProcessIdentity | null },
  ): Promise<void>
  end(id: string): Promise<void>
  get(id: string): Promise<JournalEntry | undefined>
  open(host: string, codebaseId?: CodebaseId): Promise<JournalEntry[]>
}

export type Spare = {
  readonly id: string
  readonly host: string
  readonly codebaseId: CodebaseId
  readonly path: string
  readonly adminName: string
  readonly sha: Sha
  readonly createdAt: number
}

export type SpareStore = {
  insert(spare: Spare): Promise<void>
  list(codebaseId: CodebaseId): Promise<Spare[]>
  /** Takes the row out; true for exactly one caller. */
  claim(id: string): Promise<boolean>
}

export type PortStore = {
  /** False when another environment of this host has it. */
  lease(host: string, port: number, environmentId: EnvironmentId, name: string, at: number): Promise<boolean>
  ofEnvironment(environmentId: EnvironmentId): Promise<{ name: string; port: number }[]>
  taken(host: string): Promise<number[]>
  release(environmentId: EnvironmentId): Promise<void>
}

/** Proofs are facts about commits: (tip, base, start) never changes its answer, so it is asked once. */
export type MergeQuestion = { readonly tip: Sha; readonly base: Sha; readonly start: Sha | undefined }
export type MergeAnswerStore = {
  /** One statement for many questions. */
  find(codebaseId: CodebaseId, base: Sha): Promise<{ question: MergeQuestion; answer: Merged }[]>
  save(
    codebaseId: CodebaseId,
    answers: readonly { question: MergeQuestion; answer: Merged }[],
    at: number,
  ): Promise<void>
  /** Drops the answers about any other base. */
  keepOnly(codebaseId: CodebaseId, base: Sha): Promise<void>
}

export type EventRow = {
  readonly id: string
  readonly at: number
  readonly kind: string
  readonly codebaseId: CodebaseId | undefined
  readonly environmentId: EnvironmentId | undefined
  readonly data: Readonly<Record<string, unknown>>
}

export type EventStore = {
  append(event: EventRow): Promise<void>
  /** Newest first. */
  recent(filter: { kind?: string; codebaseId?: CodebaseId; limit: number }): Promise<EventRow[]>
}
