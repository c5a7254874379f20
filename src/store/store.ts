/*
 * What is stored. In and out: typed records, each change in one transaction. One implementation for SQLite and
 * PostgreSQL.
 */
import type { Codebase } from '../domain/environment.ts'
import type { AppError } from '../domain/errors.ts'
import type { CodebaseId, EnvironmentId, Sha } from '../domain/names.ts'
import type {
  ConversationKey,
  IncomingMessage,
  Lane,
  MessageState,
  ReplyAction,
  ReplyState,
  Role,
} from '../domain/message.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import type { Work } from '../domain/work.ts'
import type { EnvironmentStore } from './environments/store.ts'
import type { EventStore } from './events.ts'
import type { FleetStores } from './fleet/store.ts'
import type { GitSnapshotStore } from './git-snapshots.ts'
import type { MergeAnswerStore } from './merge-answers.ts'
import type { PlatformMemoryStore } from './conversations/platform-memory.ts'
import type { MergedPullRequestStore } from './merged-pull-requests.ts'
import type { PageSessionStore } from './page-sessions.ts'
import type { PortStore } from './ports.ts'
import type { RunWatchStore } from './run-watches.ts'
import type { UsageStore } from './usage.ts'

/** One interface, two engines; both use the same statements and pass the same conformance suite. */
export type { ConversationKey }

export type Store = FleetStores & {
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
  readonly mergedPullRequests: MergedPullRequestStore
  readonly events: EventStore
  readonly usage: UsageStore
  readonly runWatches: RunWatchStore
  readonly gitSnapshots: GitSnapshotStore
  readonly pageSessions: PageSessionStore
  readonly platformMemory: PlatformMemoryStore
  /** All or nothing. Nested calls join the outer transaction. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>
  /**
   * Calls back if the database was deleted or replaced: from then on nothing is recorded, and everything fails with
   * `store-lost`. Returns a function that unsubscribes.
   */
  onLost(listener: (error: AppError) => void): () => void
  close(): Promise<void>
}

export type CodebasePatch = Partial<Omit<Codebase, 'id' | 'host' | 'name' | 'cloned' | 'createdAt'>>

export type CodebaseStore = {
  /** False if (host, name) or (host, repoPath) is taken. */
  insert(codebase: Codebase): Promise<boolean>
  get(id: CodebaseId): Promise<Codebase | undefined>
  byName(host: string, name: string): Promise<Codebase | undefined>
  byRepoPath(host: string, repoPath: string): Promise<Codebase | undefined>
  list(host: string): Promise<Codebase[]>
  update(id: CodebaseId, patch: CodebasePatch): Promise<void>
  remove(id: CodebaseId): Promise<void>
}

/** `conversationId` is the platform's id; (platform, conversationId) is unique. */
export type Conversation = {
  readonly id: string
  readonly platform: string
  readonly conversationId: string
  readonly codebaseId: CodebaseId | undefined
  /** Its codebase before that was unregistered. Earlier versions didn't record the name. */
  readonly formerCodebase?: { readonly id: CodebaseId; readonly name: string | undefined }
  readonly environmentId: EnvironmentId | undefined
  /** Telegram and similar: the environment is the user's, never removed automatically. */
  readonly persistent: boolean
  /** The agent used here (default: the codebase's, else the configured one). */
  readonly agent: string | undefined
  /** Its ID in the tool that it was imported from, where that may be another. */
  readonly importedAs?: string
  readonly lastActivityAt: number
  readonly closedAt: number | undefined
  readonly createdAt: number
  /** The issue or pull request it is about, from its latest message; undefined for a thread. */
  readonly work?: Work
}

export type ConversationPatch = Partial<
  Pick<Conversation, 'codebaseId' | 'environmentId' | 'agent' | 'lastActivityAt' | 'closedAt' | 'work'>
>

export type ConversationStore = {
  /** Creates it or returns the existing one. */
  ensure(conversation: Conversation): Promise<Conversation>
  find(platform: string, conversationId: string): Promise<Conversation | undefined>
  findImported(platform: string, importedAs: string): Promise<Conversation | undefined>
  /**
   * Gives an imported conversation the ID that its platform uses here. Returns it as it is now; undefined if there is
   * none, or if that ID is taken.
   */
  renameImported(key: ConversationKey, importedAs: string): Promise<Conversation | undefined>
  update(id: string, patch: ConversationPatch): Promise<void>
  get(id: string): Promise<Conversation | undefined>
  /** Most recently active first. */
  recent(filter: { platform?: string; codebaseId?: CodebaseId; limit: number }): Promise<Conversation[]>
  /** All conversations attached to one of these environments. One statement. */
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Conversation[]>
  /** Detaches every conversation from this environment and returns them. */
  detachEnvironment(id: EnvironmentId): Promise<Conversation[]>
  wasTold(id: string, notice: string): Promise<boolean>
  /** False if this conversation was told before. */
  tellOnce(id: string, notice: string, at: number): Promise<boolean>
}

/** An agent's resumable context in one conversation. At most one per conversation is live. */
export type Session = {
  readonly id: string
  /** The id of the conversation's row. */
  readonly conversation: string
  readonly agent: string
  /** The agent's own id, for resuming; undefined until reported. */
  readonly agentSessionId: string | undefined
  /** Where it runs: a session ends when that changes. */
  readonly directory: string
  readonly startedAt: number
  readonly lastUsedAt: number
  readonly endedAt: number | undefined
  readonly endReason: string | undefined
}

export type SessionStore = {
  /** Ends the live one, if any, and starts this one. */
  start(session: Session): Promise<void>
  live(conversation: string): Promise<Session | undefined>
  update(id: string, patch: { agentSessionId?: string; lastUsedAt?: number }): Promise<void>
  /** True if one was live. */
  end(conversation: string, reason: string, at: number): Promise<boolean>
}

/** An accepted message, which survives a crash. */
export type InboxMessage = IncomingMessage & {
  readonly id: string
  readonly lane: Lane
  readonly state: MessageState
  readonly acceptedAt: number
  /** How often it was started: more than once means a crash in between. */
  readonly attempts: number
  /** How often it was put back cleanly, as on shutdown: no sign of a message that crashes us. */
  readonly putBacks: number
  /** Who is running it. */
  readonly holder: MessageHolder | undefined
  /** The agent's process, which may outlive us: it must be dead before a rerun. */
  readonly child: ProcessIdentity | undefined
}

export type MessageHolder = { readonly host: string; readonly process: ProcessIdentity }

export type ClaimRequest = {
  readonly holder: MessageHolder
  readonly lane: Lane
  /** Only this conversation. */
  readonly conversation?: ConversationKey
  /** Only these platforms: nobody else can deliver the reply. */
  readonly platforms?: readonly string[]
}

/** What a conversation began with. `title`: its name on the platform. */
export type Opening = ConversationKey & { readonly text: string; readonly title: string | undefined }

export type InboxStore = {
  /** In one durable transaction; returns the new ids. Skips a known (platform, deliveryId). */
  accept(
    messages: readonly Omit<InboxMessage, 'state' | 'attempts' | 'putBacks' | 'holder' | 'child'>[],
  ): Promise<Set<string>>
  /**
   * The oldest waiting message, now running and ours; only one caller gets it, across processes. In the lane `turn`,
   * one at a time per conversation, in order of acceptance; `at-once` doesn't wait.
   */
  claim(request: ClaimRequest): Promise<InboxMessage | undefined>
  get(id: string): Promise<InboxMessage | undefined>
  byDelivery(platform: string, deliveryId: string): Promise<InboxMessage | undefined>
  /** Records the agent's process, or clears it. Fails to record one if the message isn't running. */
  setChild(id: string, child: ProcessIdentity | undefined): Promise<void>
  /** False if it is no longer `from` (and, from `running`, held by this holder). Only `claim` sets `running`. */
  transition(id: string, from: MessageState, to: MessageState, holder?: MessageHolder): Promise<boolean>
  /** Returns our message to the queue cleanly: it doesn't count as a crash. */
  putBack(id: string, holder: MessageHolder): Promise<boolean>
  running(): Promise<InboxMessage[]>
  /** Waiting since before this time, oldest first. */
  waiting(before: number, limit: number): Promise<InboxMessage[]>
  counts(): Promise<{ waiting: number; running: number }>
  /** Those with a message waiting or running. One statement. */
  pending(conversations: readonly ConversationKey[]): Promise<ConversationKey[]>
  /** The latest, in order of acceptance. */
  ofConversation(conversation: ConversationKey, limit: number): Promise<InboxMessage[]>
  /** What each began with, apart from commands; those that are still there. */
  firstTexts(conversations: readonly ConversationKey[]): Promise<Opening[]>
  /** Deletes done messages accepted before this time; until then a delivery id is recognized. */
  deleteDone(before: number): Promise<number>
}

/** A reply to a conversation: recorded first, delivered in order, at least once. */
export type Reply = ConversationKey & {
  readonly id: string
  readonly inboxId: string | undefined
  /** (inboxId, key) is sent once, however often the message is run. */
  readonly key: string
  readonly role: Role
  readonly text: string
  /** Its buttons, where the platform has any. */
  readonly actions?: readonly ReplyAction[] | undefined
  readonly state: ReplyState
  readonly attempts: number
  /** Parts of a split reply already sent. */
  readonly sentParts: number
  readonly nextAttemptAt: number
  readonly createdAt: number
  readonly sentAt: number | undefined
  readonly error: string | undefined
}

export type OutboxStore = {
  /** Returns the new ids. */
  append(replies: readonly Omit<Reply, 'state' | 'attempts' | 'sentParts' | 'sentAt' | 'error'>[]): Promise<Set<string>>
  /**
   * The first waiting reply of each conversation, if due: nothing overtakes it. One that would wait for longer than
   * `longestWaitMs` is due too: the clock was set back.
   */
  due(platforms: readonly string[], now: number, limit: number, longestWaitMs: number): Promise<Reply[]>
  /** When the next of those is due; undefined if none is waiting. */
  nextDueAt(platforms: readonly string[]): Promise<number | undefined>
  get(id: string): Promise<Reply | undefined>
  update(
    id: string,
    patch: Partial<Pick<Reply, 'state' | 'attempts' | 'sentParts' | 'nextAttemptAt' | 'sentAt' | 'error'>>,
  ): Promise<void>
  /** The latest, in the order appended. */
  ofConversation(conversation: ConversationKey, limit: number): Promise<Reply[]>
  counts(): Promise<{ waiting: number; failed: number }>
  /** Deletes replies sent before this time. Failed ones stay. */
  deleteSent(before: number): Promise<number>
}

export type RestorePointStore = {
  insert(point: RestorePoint): Promise<void>
  get(id: string): Promise<RestorePoint | undefined>
  /** Newest first. */
  list(codebaseId: CodebaseId): Promise<RestorePoint[]>
  /** Adds the time since the last look to the age of the host's points. Inserting doesn't. */
  watch(host: string, now: number): Promise<void>
  /** Looks, then returns those that have expired and were watched for their whole retention time. */
  expired(host: string, now: number): Promise<RestorePoint[]>
  remove(id: string): Promise<void>
}

/** The environment is in use. Dead holders are detected by identity, never by timeout. */
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

/** An intent: written before the effect, deleted once the result is recorded. */
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
  /** Advances to `step` and merges `data`; `child: null` clears the child. */
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
  /** Deletes the row; true for exactly one caller. */
  claim(id: string): Promise<boolean>
}
