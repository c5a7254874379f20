import type { IncomingMessage, MessageAttachment, MessageDetails, ReplyAction, Role } from '../../domain/message.ts'

/** Implemented by each platform to deliver replies. Nothing here depends on a specific platform. */
export type Delivery = {
  readonly platform: string
  /** Maximum length of a message in characters; undefined: unlimited. */
  readonly limit: number | undefined
  /**
   * Sends one message. `DeliveryError` says whether a retry may help; any other error counts as *never reached*. Called
   * again with the same `id` after a crash; platforms that detect duplicates send it once.
   */
  send(message: OutgoingMessage): Promise<void>
  /**
   * Fetches what a message needs before it is handled: the thread's latest messages, a pull request's head. Called when
   * the message is started, not when it arrives: then the service is waiting for our response.
   */
  prepare?(message: Pick<IncomingMessage, 'conversationId' | 'text' | 'details'>): Promise<MessageDetails>
  /**
   * Fetches a file that came with a message, from the service itself and nowhere else. The caller stops reading at its
   * size limit.
   */
  fetchAttachment?(attachment: MessageAttachment, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /**
   * Shows how far a run is, if the platform can. Undefined: it ended without an answer. `replyTo` as in the message that
   * is run. Best effort.
   */
  preview?(conversationId: string, progress: Progress | undefined, replyTo?: string): void
}

/** How far a run is. Shown until its answer takes the place of it. */
export type Progress = {
  /** The agent's reply so far; empty until it writes. */
  readonly text: string
  /** The last line about an action: "edited src/login.ts". */
  readonly tool: string | undefined
  /** Also identifies the run. */
  readonly startedAt: number
}

export type OutgoingMessage = {
  /** Stable for the same part of the same reply: a marker, a nonce, metadata. */
  readonly id: string
  readonly conversationId: string
  /** `MessageDetails.replyTo` of the message that it answers. */
  readonly replyTo?: string | undefined
  readonly role: Role
  readonly text: string
  /** Buttons, on the last part. Where the platform has none, the text says what to write. */
  readonly actions?: readonly ReplyAction[] | undefined
  /** Part number and count: long replies are split at the platform's limit. */
  readonly part: number
  readonly parts: number
}

/** The two failures that matter: refused, or never reached. */
export class DeliveryError extends Error {
  readonly kind: 'refused' | 'unreachable'
  /** How long the service told us to wait. */
  readonly retryAfterMs: number | undefined

  constructor(
    kind: 'refused' | 'unreachable',
    message: string,
    options: { cause?: unknown; retryAfterMs?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'DeliveryError'
    this.kind = kind
    this.retryAfterMs = pauseOf(options.retryAfterMs)
  }
}

/**
 * A service's request to wait is followed for this long at most: a header may say anything, and a reply must not wait
 * for years.
 */
export const LONGEST_PAUSE_MS = 60 * 60_000

const pauseOf = (asked: number | undefined): number | undefined =>
  asked === undefined || Number.isNaN(asked) ? undefined : Math.min(Math.max(0, asked), LONGEST_PAUSE_MS)
