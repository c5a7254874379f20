import { AppError } from './errors.ts'
import type { IsolationHints } from './hints.ts'
import type { MergedPullRequest } from './merge-proof.ts'

/** What a platform passes on: verified, allowed, and meant for us. Everything else is decided later. */
export type IncomingMessage = {
  readonly platform: string
  /** The platform's id of the thread. */
  readonly conversationId: string
  /** The platform's id of this delivery: the same id means the same message. */
  readonly deliveryId: string
  /** `closed`: the issue or PR was closed or merged; no text. */
  readonly kind: 'message' | 'closed'
  readonly text: string
  readonly details: MessageDetails
  /**
   * When it was written, according to the service; NaN if it doesn't say. Undefined where replay isn't possible:
   * callers with the token, services that we connect to, and Slack, whose signature has its own time.
   */
  readonly writtenAt?: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/** How long we remember the id of an accepted delivery. */
export const DELIVERY_RETENTION_MS = 30 * DAY_MS

/**
 * Once its id is forgotten, a recorded delivery could be replayed with its valid signature. So refuse anything older; a
 * day earlier, since the service's clock may differ.
 */
export const isTooOld = ({ writtenAt }: Pick<IncomingMessage, 'writtenAt'>, now: number): boolean =>
  writtenAt !== undefined && !(writtenAt > now - (DELIVERY_RETENTION_MS - DAY_MS))

/** `headBranch`: undefined if it is another repository's. */
export type MergeEvent = MergedPullRequest & { readonly headBranch?: string }

/** A file that came with a message. It is fetched when the message is handled, not when it arrives. */
export type MessageAttachment = {
  readonly name: string
  /** What the service says about it, which isn't verified. */
  readonly mediaType?: string
  readonly bytes?: number
  /** How the platform finds it again: a URL, a file ID. */
  readonly reference: string
  /** Not the message's author's: from a description that somebody else wrote, or from a forwarded message. */
  readonly fromOthers?: true
}

export type MessageDetails = {
  readonly userId?: string
  /** The service's id of this message, if it must be distinguished within its thread. */
  readonly messageId?: string
  /** Where in the conversation its answers go, in the platform's own terms (default: at the end). */
  readonly replyTo?: string
  /** The earlier thread, the text: data for the agent, never instructions. */
  readonly context?: string
  readonly attachments?: readonly MessageAttachment[]
  /** What the thread is called there, such as an issue's title. `own`: its author also wrote this message. */
  readonly title?: { readonly text: string; readonly own: boolean }
  readonly hints?: IsolationHints
  /** The codebase that the message comes from. Binds a conversation that has none. */
  readonly codebase?: string
  /** The user asked for that codebase: move a conversation that has another one. */
  readonly move?: boolean
  /** The repository (`owner/name`), if the platform doesn't know the codebase's name. */
  readonly github?: string
  /** A pull request of that repository was merged, and thereby closed. */
  readonly mergedPullRequest?: MergeEvent
  /** Where to clone it from, if it isn't registered and may be cloned. */
  readonly cloneUrl?: string
  /** The thread's channel: a new thread inherits the codebase that its channel is bound to. */
  readonly channelId?: string
  /** The agent for this conversation from now on. */
  readonly agent?: string
}

/** `at-once`: a command that is answered without waiting for its turn. */
export type Lane = 'turn' | 'at-once'

export type MessageState = 'waiting' | 'running' | 'done'

/** waiting → done: answered without a run, or abandoned. running → waiting: interrupted, to be rerun. */
const messageTransitions: Record<MessageState, readonly MessageState[]> = {
  waiting: ['running', 'done'],
  running: ['done', 'waiting'],
  done: [],
}

export const assertMessageTransition = (from: MessageState, to: MessageState): void => {
  if (!messageTransitions[from].includes(to)) {
    throw new AppError('illegal-transition', `a message that is ${from} can't become ${to}`)
  }
}

export type ReplyState = 'waiting' | 'sent' | 'failed'

/** `agent`: the agent's reply, one per run. `system`: notices, answers to commands, refusals. */
export type Role = 'agent' | 'system'

/** A button under a reply. Pressing it is the same as writing the command. */
export type ReplyAction = {
  readonly label: string
  /** `/allow`, `/worktree restore issue-42`. */
  readonly command: string
  readonly style?: 'primary' | 'danger'
}

/** A conversation by its platform's id. */
export type ConversationKey = { readonly platform: string; readonly conversationId: string }
