import type { IncomingMessage } from '../domain/message.ts'
import type { Delivery } from '../conversations/outbox/delivery.ts'
import type { Authorised } from './authorisation.ts'

/** The seam: a folder per platform, one line in `remote.ts`, one conformance suite over all of them. */
export type Platform = Delivery & {
  /** Begins to listen. Throws an AppError when it cannot: the rest of the server runs on. */
  start(inbox: PlatformInbox): Promise<void>
  /** Stops accepting messages. Replies can still be sent. */
  stop(): Promise<void>
  /**
   * What the service posts to /webhooks/<platform>. Verified here, over the raw bytes, before anything is read from
   * them; acknowledged only once what it brought is durable.
   */
  webhook?(request: WebhookRequest): Promise<WebhookAnswer>
  /** How it stands with the service, for `coppice platforms`; a platform without one needs no service. */
  status?(): PlatformStatus
}

export type WebhookRequest = {
  /** Names in lower case. */
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
  /** Since when it is in this state. */
  readonly since: number
  readonly lastMessageAt: number | undefined
  readonly lastError: string | undefined
}

/** Where a platform hands over what it has verified. It acknowledges only after this has answered. */
export type PlatformInbox = {
  /** An order, with the proof that its author may give one. */
  accept(order: Order, by: Authorised): Promise<Accepted | TooOld>
  /** A thread has ended. It has no words, so it orders nothing and needs no proof. */
  close(thread: Closing): Promise<Accepted | TooOld>
}

export type Order = Omit<IncomingMessage, 'platform'> & { readonly kind: 'message' }

export type Closing = Pick<IncomingMessage, 'conversationId' | 'deliveryId' | 'details' | 'writtenAt'>

/** Written so long ago that it may be a recording of a delivery whose id is forgotten: nothing was done. */
export type TooOld = { readonly outcome: 'too-old' }

/** `id` is our own: changes are reported under it. Of a duplicate it is the first one's. */
export type Accepted = { readonly outcome: 'accepted' | 'duplicate'; readonly id: string }
