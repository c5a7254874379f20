import type { IncomingMessage } from '../domain/message.ts'
import type { Delivery } from '../conversations/delivery.ts'

/** The seam: a folder per platform, one line in the registry, one conformance suite over all of them. */
export type Platform = Delivery & {
  /** Begins to listen. Throws an AppError when it cannot: the rest of the server runs on. */
  start(inbox: PlatformInbox): Promise<void>
  /** Stops to accept. Replies can still be sent. */
  stop(): Promise<void>
}

/** Where a platform hands over what it has verified. It acknowledges only after this has answered. */
export type PlatformInbox = {
  accept(message: Omit<IncomingMessage, 'platform'>): Promise<Accepted>
}

/** `id` is our own: changes are reported under it. Of a duplicate it is the first one's. */
export type Accepted = { readonly outcome: 'accepted' | 'duplicate'; readonly id: string }
