import type { Codebase, EnvironmentStatus, IsolatedEnvironment } from '../domain/environment.ts'
import type { AppError } from '../domain/errors.ts'
import type { CodebaseId, EnvironmentId, Sha } from '../domain/names.ts'
import type { ConversationKey, IncomingMessage, Lane, MessageState, ReplyState, Role } from '../domain/message.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import type { Work } from '../domain/work.ts'
import type { GitLookStore } from './git-looks.ts'
import type { MergeAnswerStore } from './merge-answers.ts'
import type { PageSessionStore } from './page-sessions.ts'
import type { PortStore } from './ports.ts'
import type { RunWatchStore } from './run-watches.ts'
import type { UsageStore } from './usage.ts'

/** One interface, two engines; the same statements and the same conformance suite over both. */
export type { ConversationKey }

export type Store = {
  readonly engine: 'sqlite' | 'postgres'
  readonly codebases: CodebaseStore
  readonly environments: EnvironmentStore
  readonly conversations: ConversationStore
  readonly sessions: SessionStore
  readonly inbox: InboxStore
  readonly outbox: OutboxStore
  readonly restorePoints: RestorePointStore
  readonly leases: LeaseStore
  readonly journal: JournalStore
  readonly spares: SpareStore
  readonly ports: PortStore
  readonly mergeAnswers: MergeAnswerStore
  readonly events: EventStore
  readonly usage: UsageStore
  readonly runWatches: RunWatchStore
  readonly gitLooks: GitLookStore
  readonly pageSessions: PageSessionStore
  /** Everything `work` does through the given store happens or none of it. Nested calls join the outer one. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>
  /**
   * Calls back when the database was deleted or replaced under us: nothing is recorded from then on, and everything
   * fails with `store-lost`. Answers what takes that back.
   */
  onLost(listener: (error: AppError) => void): () => void
  close(): Promise<void>
}

export type CodebasePatch = Partial<Omit<Codebase, 'id' | 'host' | 'name' | 'cloned' | 'createdAt'>>

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

/** Status has transitions of its own; what the others say never changes. */
export type EnvironmentPatch = Partial<
  Omit<IsolatedEnvironment, 'id' | 'host' | 'codebaseId' | 'work' | 'provider' | 'status' | 'createdBy' | 'createdAt'>
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
  /** Those that nobody has proven or vouched for, removed and released ones as well. */
  unproven(codebaseId: CodebaseId): Promise<IsolatedEnvironment[]>
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
  /** The one it had when that was unregistered. Earlier versions did not record its name. */
  readonly formerCodebase?: { readonly id: CodebaseId; readonly name: string | undefined }
  readonly environmentId: EnvironmentId | undefined
  /** Telegram and its like: the environment is the user's own, no automation removes it. */
  readonly persistent: boolean
  /** Which agent answers here; undefined: the codebase's, else the configured one. */
  readonly agent: string | undefined
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
    patch: Partial<Pick<Conversation, 'codebaseId' | 'environmentId' | 'agent' | 'lastActivityAt' | 'closedAt'>>,
  ): Promise<void>
  get(id: string): Promise<Conversation | undefined>
  /** Latest activity first. */
  recent(filter: { platform?: string; codebaseId?: CodebaseId; limit: number }): Promise<Conversation[]>
  /** All conversations that point at one of these environments. One statement. */
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Conversation[]>
  /** Clears the reference in every conversation of this environment and returns those that had it. */
  letGo(id: EnvironmentId): Promise<Conversation[]>
}

/** An agent's resumable context inside one conversation. At most one per conversation has not ended. */
export type Session = {
  readonly id: string
  /** Our own id of the conversation's row. */
  readonly conversation: string
  readonly agent: string
  /** The agent's own id, by which it resumes; undefined until it has said one. */
  readonly agentSessionId: string | undefined
  /** Where it runs: a session ends when that changes. */
  readonly directory: string
  readonly startedAt: number
  readonly lastUsedAt: number
  readonly endedAt: number | undefined
  readonly endReason: string | undefined
}

export type SessionStore = {
  /** Ends the one that is live, if any, and begins this one. */
  start(session: Session): Promise<void>
  live(conversation: string): Promise<Session | undefined>
  update(id: string, patch: { agentSessionId?: string; lastUsedAt?: number }): Promise<void>
  /** True when there was one to end. */
  end(conversation: string, reason: string, at: number): Promise<boolean>
}

/** A message that was accepted. From here on it survives a crash. */
export type InboxMessage = IncomingMessage & {
  readonly id: string
  readonly lane: Lane
  readonly state: MessageState
  readonly acceptedAt: number
  /** How often it was begun: more than once means that a crash came between. */
  readonly attempts: number
  /** How often it was put back in good order, as at a shutdown: no sign of a message that takes us with it. */
  readonly putBacks: number
  /** Who works on it, while it is running. */
  readonly holder: MessageHolder | undefined
  /** The agent's process, which may outlive us: it must be dead before the message is run again. */
  readonly child: ProcessIdentity | undefined
}

export type MessageHolder = { readonly host: string; readonly process: ProcessIdentity }

export type ClaimRequest = {
  readonly holder: MessageHolder
  readonly lane: Lane
  /** Only this conversation's, for who answers no other. */
  readonly conversation?: ConversationKey
  /** Only of these platforms: nobody else can deliver the reply. */
  readonly platforms?: readonly string[]
}

export type InboxStore = {
  /** All in one durable transaction; answers the ids that are new. One that (platform, deliveryId) knows is skipped. */
  accept(
    messages: readonly Omit<InboxMessage, 'state' | 'attempts' | 'putBacks' | 'holder' | 'child'>[],
  ): Promise<Set<string>>
  /**
   * The oldest waiting message, now running and ours; one caller gets it, across processes. In the lane `turn` one at a
   * time per conversation, in the order of acceptance; `at-once` waits for nobody.
   */
  claim(request: ClaimRequest): Promise<InboxMessage | undefined>
  get(id: string): Promise<InboxMessage | undefined>
  byDelivery(platform: string, deliveryId: string): Promise<InboxMessage | undefined>
  /** Names the agent's process, or clears it. A process cannot be named once the message is not running. */
  setChild(id: string, child: ProcessIdentity | undefined): Promise<void>
  /** False when it is no longer `from` (and, from `running`, held by this holder). Only `claim` makes one running. */
  transition(id: string, from: MessageState, to: MessageState, holder?: MessageHolder): Promise<boolean>
  /** Ours again to the line, in good order: it does not count as a run that took us with it. */
  putBack(id: string, holder: MessageHolder): Promise<boolean>
  running(): Promise<InboxMessage[]>
  /** Waiting since before this time, oldest first. */
  waiting(before: number, limit: number): Promise<InboxMessage[]>
  counts(): Promise<{ waiting: number; running: number }>
  /** Which of these have a message waiting or running. One statement. */
  pending(conversations: readonly ConversationKey[]): Promise<ConversationKey[]>
  /** The latest ones, in the order of acceptance. */
  ofConversation(conversation: ConversationKey, limit: number): Promise<InboxMessage[]>
  /** Drops what is done and was accepted before this time; a delivery id is recognised until then. */
  forgetDone(before: number): Promise<number>
}

/** What is to be said to a conversation: recorded first, delivered in order, at least once. */
export type Reply = ConversationKey & {
  readonly id: string
  readonly inboxId: string | undefined
  /** (inboxId, key) is said once, however often the message is run. */
  readonly key: string
  readonly role: Role
  readonly text: string
  readonly state: ReplyState
  readonly attempts: number
  /** Parts of a split reply that are out already. */
  readonly sentParts: number
  readonly nextAttemptAt: number
  readonly createdAt: number
  readonly sentAt: number | undefined
  readonly error: string | undefined
}

export type OutboxStore = {
  /** Answers the ids that are new. */
  append(replies: readonly Omit<Reply, 'state' | 'attempts' | 'sentParts' | 'sentAt' | 'error'>[]): Promise<Set<string>>
  /** The first waiting one of each conversation, if its time has come: nothing overtakes it. */
  due(platforms: readonly string[], now: number, limit: number): Promise<Reply[]>
  /** When the next of those will be due; undefined when nothing waits. */
  nextDueAt(platforms: readonly string[]): Promise<number | undefined>
  get(id: string): Promise<Reply | undefined>
  update(
    id: string,
    patch: Partial<Pick<Reply, 'state' | 'attempts' | 'sentParts' | 'nextAttemptAt' | 'sentAt' | 'error'>>,
  ): Promise<void>
  /** The latest ones, in the order in which they were appended. */
  ofConversation(conversation: ConversationKey, limit: number): Promise<Reply[]>
  counts(): Promise<{ waiting: number; failed: number }>
  /** Drops what was sent before this time. What failed stays. */
  forgetSent(before: number): Promise<number>
}

export type RestorePointStore = {
  insert(point: RestorePoint): Promise<void>
  get(id: string): Promise<RestorePoint | undefined>
  /** Newest first. */
  list(codebaseId: CodebaseId): Promise<RestorePoint[]>
  /** Counts the time since the last look towards the age of every point of the host. Inserting does not. */
  watch(host: string, now: number): Promise<void>
  /** Looks, and answers those whose recorded expiry is over and that were watched for as long as they were to be kept. */
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
