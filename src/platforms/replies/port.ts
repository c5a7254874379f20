import type { DeliveryError } from '../../conversations/outbox/delivery.ts'

/**
 * What the reply engine needs of a service: post, edit, delete, find. Whatever differs between services is answered
 * here, so that the engine names none of them.
 */
export type ReplyPort<Place, Id> = {
  /** Where a conversation is; undefined: it is not one of this service's. */
  placeOf(conversationId: string): Place | undefined
  /** The limit that a call counts against. A pause that the service asks for holds up this unit and no other. */
  unitOf(place: Place, call: Call): Unit
  /** In the service's own dialect. An empty one is not sent: there is nothing to see in it. */
  render(text: string): string
  post(place: Place, body: string, mark: Mark): Promise<Id>
  edit(place: Place, id: Id, body: string, mark: Mark): Promise<void>
  /** Without it, what is not needed any more stays where it is. */
  delete?(place: Place, id: Id): Promise<void>
  /**
   * What of ours is there already, before anything is said in this conversation. Without it the service has nothing by
   * which a message could be known again, and one whose confirmation was lost is sent again.
   */
  find?(place: Place): Promise<Found<Id>>
  /** Posting twice with the same mark makes one message: after a lost confirmation nothing has to be looked for. */
  readonly postsOnce?: boolean
  failureOf(error: unknown): Failure
  readonly previews: {
    /** Undefined: this cannot be shown. */
    render(text: string): string | undefined
    /** Whether a preview can be edited into this answer; without it, always. */
    fits?(body: string): boolean
    /** An answer that comes sooner needs no preview. */
    readonly firstMs: number
    /** When something of ours is posted below it: it stays, is posted again below when it grows, or is removed. */
    readonly whenOvertaken: 'stay' | 'repost' | 'remove'
  }
}

export type Call = 'post' | 'edit' | 'delete' | 'find'

export type Unit = {
  readonly name: string
  /** Between two edits of one preview; all conversations of the unit that show one share this. */
  readonly everyMs: number
  /** How many replies may be on their way at once, and how long each takes; the next ones wait in the outbox. */
  readonly queue?: { readonly most: number; readonly eachMs: number }
}

/** Written beside a message where the service has a place for it, so that it is known again. */
export type Mark = { readonly kind: 'reply' | 'preview'; readonly id: string }

export type Found<Id> = {
  /** Whether this reply is there. */
  has(id: string, body: string): boolean
  /** A preview that a process before this one left, and that may become the answer. */
  readonly preview?: Id | undefined
  /** Previews that were left and are in the way. */
  readonly stale?: readonly Id[]
}

export type Failure = {
  readonly error: DeliveryError
  /** The service may have done it all the same: only its answer was lost. */
  readonly unclear: boolean
}
