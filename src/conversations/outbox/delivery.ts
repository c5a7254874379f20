import type { IncomingMessage, MessageDetails, Role } from '../../domain/message.ts'

/**
 * What a conversation needs of its platform to be answered. Platforms implement it; nothing here knows which there are.
 */
export type Delivery = {
  readonly platform: string
  /** How many characters one message may have there; undefined: as many as there are. */
  readonly limit: number | undefined
  /**
   * Sends one message. `DeliveryError` says whether trying again may help; anything else thrown counts as *never
   * reached*. Called again with the same `id` after a crash: a platform that can tell sends it once.
   */
  send(message: OutgoingMessage): Promise<void>
  /**
   * What the service has to be asked before a message can be worked on: the thread's newest words, where a pull
   * request's head is. Asked when the message is taken up, not when it comes: then the service waits for our answer.
   */
  prepare?(message: Pick<IncomingMessage, 'conversationId' | 'text' | 'details'>): Promise<MessageDetails>
  /** Shows what the agent has said so far, where a platform can. Nothing depends on it arriving. */
  preview?(conversationId: string, text: string): void
}

export type OutgoingMessage = {
  /** The same for the same part of the same reply, for ever: a marker, a nonce, metadata. */
  readonly id: string
  readonly conversationId: string
  readonly role: Role
  readonly text: string
  /** Which part of how many: a long reply is split at the platform's limit. */
  readonly part: number
  readonly parts: number
}

/** The two failures that matter: the service said no, or it was never reached. */
export class DeliveryError extends Error {
  readonly kind: 'refused' | 'unreachable'
  /** How long the service asked us to wait. */
  readonly retryAfterMs: number | undefined

  constructor(
    kind: 'refused' | 'unreachable',
    message: string,
    options: { cause?: unknown; retryAfterMs?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'DeliveryError'
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
  }
}
