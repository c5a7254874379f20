import { AppError } from './errors.ts'
import type { IsolationHints } from './hints.ts'

/** What a platform hands over: verified, allowed, and meant for us. Everything else about it is decided further in. */
export type IncomingMessage = {
  readonly platform: string
  /** The platform's own id of the thread. */
  readonly conversationId: string
  /** The platform's own id of this delivery: the same one again is the same message. */
  readonly deliveryId: string
  /** `closed`: the issue or PR was closed or merged; no text. */
  readonly kind: 'message' | 'closed'
  readonly text: string
  readonly details: MessageDetails
  /**
   * When the service says it was written; NaN when it does not. Undefined where a recording could not be sent again
   * later: callers with the token, services that we connect to, and Slack, whose signature has a time of its own.
   */
  readonly writtenAt?: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/** How long the id of a delivery is remembered after it was accepted. */
export const DELIVERY_RETENTION_MS = 30 * DAY_MS

/**
 * A recorded delivery can be sent again, with its valid signature, when its id is forgotten. So what is older than that
 * is refused; a day earlier, since the service's clock is not ours.
 */
export const isTooOld = ({ writtenAt }: Pick<IncomingMessage, 'writtenAt'>, now: number): boolean =>
  writtenAt !== undefined && !(writtenAt > now - (DELIVERY_RETENTION_MS - DAY_MS))

export type MessageDetails = {
  readonly userId?: string
  /** The service's own id of what was said, where it has to be told apart from the rest of its thread. */
  readonly messageId?: string
  /** Earlier words of the thread, the text: data for the agent, never an order. */
  readonly context?: string
  readonly hints?: IsolationHints
  /** The name of the codebase that the message comes from. It binds a conversation that has none. */
  readonly codebase?: string
  /** The user asked for that codebase: a conversation that is about another one moves. */
  readonly move?: boolean
  /** The repository it is about, where the platform knows that and not what it is called here: `owner/name`. */
  readonly github?: string
  /** Where that can be cloned from, if it is not known here and may be cloned. */
  readonly cloneUrl?: string
  /** The channel that the thread is in: a new thread takes over the codebase that its channel is bound to. */
  readonly channelId?: string
  /** Which agent, for this conversation from now on. */
  readonly agent?: string
}

/** A command that does not wait its turn is answered beside what is running. */
export type Lane = 'turn' | 'at-once'

export type MessageState = 'waiting' | 'running' | 'done'

/** waiting → done: answered without a run, or given up. running → waiting: interrupted, to be run again. */
const messageTransitions: Record<MessageState, readonly MessageState[]> = {
  waiting: ['running', 'done'],
  running: ['done', 'waiting'],
  done: [],
}

export const assertMessageTransition = (from: MessageState, to: MessageState): void => {
  if (!messageTransitions[from].includes(to)) {
    throw new AppError('illegal-transition', `a message that is ${from} cannot become ${to}`)
  }
}

export type ReplyState = 'waiting' | 'sent' | 'failed'

/** `agent`: what the agent said, one per run. `system`: notices, command answers, refusals. */
export type Role = 'agent' | 'system'

/** A conversation by its platform's id. */
export type ConversationKey = { readonly platform: string; readonly conversationId: string }
