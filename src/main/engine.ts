/*
 * Everything that works on messages, wired together. In: a workplace (store, git, settings). Out: running
 * conversations, outbox and cleanup, for `serve` or for one `coppice chat`.
 */
import { join } from 'node:path'
import { createAgents } from '../agents/registry.ts'
import { type Changes, createChanges } from '../conversations/changes.ts'
import type { ConversationsContext } from '../conversations/context.ts'
import { type Conversations, createConversations } from '../conversations/conversations.ts'
import type { Delivery } from '../conversations/outbox/delivery.ts'
import { createEndRun } from '../runs/end-run.ts'
import type { Handled } from '../conversations/message-controls.ts'
import { createOutbox, type Outbox } from '../conversations/outbox/outbox.ts'
import type { MessageQueue } from '../conversations/inbox/queue.ts'
import { createStoreQueue } from '../conversations/inbox/store-queue.ts'
import type { Workplace } from '../commands/command.ts'
import type { RunTokens } from '../runs/tokens.ts'
import { writableCgroup } from '../process/cgroup.ts'
import type { Lane } from '../domain/message.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'

export type Engine = {
  readonly context: ConversationsContext
  readonly conversations: Conversations
  readonly outbox: Outbox
  readonly changes: Changes
}

export type EngineOptions = {
  /** Only for a server: agents use them at its address. */
  readonly runTokens?: RunTokens
  readonly deliveries: ReadonlyMap<string, Delivery>
  /** Serve only this conversation: the command line without a server. */
  readonly conversation?: ConversationKey
  /** Whether to take another message of the lane now (default: always). */
  readonly mayClaim?: (lane: Lane) => boolean
  readonly onHandled?: (message: InboxMessage, handled: Handled) => void
}

/** Everything that processes messages, for the server and for `coppice chat` without one. */
export const createEngine = (
  { context: isolation, environments, fleet, keepSpares, platforms }: Workplace,
  { deliveries, runTokens, conversation, mayClaim = () => true, onHandled }: EngineOptions,
): Engine => {
  const { store, host, self, clock, ids, log, settings, git, home, secrets, failpoint } = isolation
  const { redact } = secrets
  const changes = createChanges()
  const all = createStoreQueue({
    store,
    host,
    self,
    clock,
    ids,
    log,
    failpoint,
    endRun: createEndRun(isolation),
    platforms: [...deliveries.keys()],
    ...(conversation !== undefined && { conversation }),
  })
  const queue: MessageQueue = { ...all, claim: async (lane) => (mayClaim(lane) ? all.claim(lane) : undefined) }
  const { ownEnvironment = {} } = isolation
  const contextDirectory = join(home, 'context')
  const agents = createAgents({ settings, git, clock, ids, self, contextDirectory, ownEnvironment })
  const context: ConversationsContext = {
    isolation,
    environments,
    fleet,
    queue,
    agents,
    deliveries,
    platforms,
    changes,
    redact,
    ...(runTokens !== undefined && { runTokens }),
    keepSpares,
    repoCommands: new Map(),
    cgroup: writableCgroup(),
  }
  const outbox = createOutbox({ store, deliveries, changes, clock, log, redact, failpoint })
  const conversations = createConversations(context, { outbox, ...(onHandled !== undefined && { onHandled }) })
  return { context, conversations, outbox, changes }
}
