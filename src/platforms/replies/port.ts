import type { ReplyAction } from '../../domain/message.ts'
import type { DeliveryError } from '../../conversations/outbox/delivery.ts'

/**
 * What the reply engine needs from a service: post, edit, delete, find. All differences between services are described
 * here, so the engine knows none of them.
 */
export type ReplyPort<Place, Id> = {
  /** Where a conversation is; undefined: not on this service. */
  placeOf(conversationId: string): Place | undefined
  /** The limit that a call counts against. When the service asks us to wait, only this limit is paused. */
  rateLimitOf(place: Place, call: Call): RateLimit
  /** In the service's dialect. An empty result isn't sent. */
  render(text: string): string
  /** `actions` are shown as buttons where the service has them; an edit replaces them. */
  post(place: Place, body: string, mark: Mark, actions: readonly ReplyAction[]): Promise<Id>
  edit(place: Place, id: Id, body: string, mark: Mark, actions: readonly ReplyAction[]): Promise<void>
  /** Without it, obsolete messages stay. */
  delete?(place: Place, id: Id): Promise<void>
  /**
   * Finds our earlier messages before we post in this conversation. Without it, the service has nothing to recognise a
   * message by, and one whose confirmation was lost is sent again.
   */
  find?(place: Place): Promise<Found<Id>>
  /** Posting twice with the same mark creates one message, so nothing is looked up after a lost confirmation. */
  readonly postsOnce?: boolean
  failureOf(error: unknown): Failure
  readonly previews: {
    /** Undefined: can't be shown. */
    render(text: string): string | undefined
    /** Whether a preview can be edited into this reply (default: always). */
    fits?(body: string): boolean
    /** A reply that arrives sooner needs no preview. */
    readonly firstMs: number
    /** What to do once something of ours is below it: leave it, repost it below when it grows, or remove it. */
    readonly whenOvertaken: 'stay' | 'repost' | 'remove'
  }
}

export type Call = 'post' | 'edit' | 'delete' | 'find'

export type RateLimit = {
  readonly name: string
  /** Minimum time between two edits of a preview, shared by all previews under this limit. */
  readonly everyMs: number
  /** How many replies may be in flight, and how long each takes; further ones wait in the outbox. */
  readonly queue?: { readonly most: number; readonly eachMs: number }
}

/** Stored with a message where the service allows it, to recognise the message later. */
export type Mark = { readonly kind: 'reply' | 'preview'; readonly id: string }

export type Found<Id> = {
  /** Whether this reply was posted. */
  has(id: string, body: string): boolean
  /** An earlier process's preview, which can become the reply. */
  readonly preview?: Id | undefined
  /** Leftover previews to delete. */
  readonly stale?: readonly Id[]
}

export type Failure = {
  readonly error: DeliveryError
  /** The service may have done it: only its response was lost. */
  readonly mayHaveSucceeded: boolean
}
