/*
 * Chat platforms. In: a platform's events. Out: authorised messages for the inbox; and in the other direction replies.
 * One folder each, one line in `remote.ts`, one conformance suite.
 */
import type { IncomingMessage } from '../domain/message.ts'
import type { Delivery } from '../conversations/outbox/delivery.ts'
import type { Authorised } from './authorisation.ts'

/** The interface of a platform: one folder and one line in `remote.ts` each, one conformance suite for all. */
export type Platform = Delivery & {
  /** Starts listening. Throws an AppError if it can't; the rest of the server runs on. */
  start(inbox: PlatformInbox): Promise<void>
  /** Stops accepting messages. Replies can still be sent. */
  stop(): Promise<void>
  /**
   * Handles a post to /webhooks/<platform>. Verifies the raw bytes before reading anything from them, and acknowledges
   * only once the content is durable.
   */
  webhook?(request: WebhookRequest): Promise<WebhookAnswer>
  /** The connection's status, for `coppice platforms`; absent if the platform needs no service. */
  status?(): PlatformStatus
}

export type WebhookRequest = {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export type WebhookAnswer = {
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type PlatformStatus = {
  readonly state: 'connected' | 'connecting' | 'disconnected'
  /** When it entered this state. */
  readonly since: number
  readonly lastMessageAt: number | undefined
  readonly lastError: string | undefined
}

/** Takes verified messages. The platform acknowledges only after this resolves. */
export type PlatformInbox = {
  /** A message, with proof that its author is allowed. */
  accept(order: PlatformMessage, by: Authorised): Promise<Accepted | TooOld>
  /** A thread was closed. It carries no text, so it needs no proof. */
  close(thread: ThreadClosed): Promise<Accepted | TooOld>
}

export type PlatformMessage = Omit<IncomingMessage, 'platform'> & { readonly kind: 'message' }

export type ThreadClosed = Pick<IncomingMessage, 'conversationId' | 'deliveryId' | 'details' | 'writtenAt'>

/** Old enough to be a replay of a delivery whose ID was forgotten; ignored. */
export type TooOld = { readonly outcome: 'too-old' }

/** `id` is ours: changes are reported under it. A duplicate has the original's. */
export type Accepted = { readonly outcome: 'accepted' | 'duplicate'; readonly id: string }
