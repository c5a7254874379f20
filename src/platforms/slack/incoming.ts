import { setTimeout as delay } from 'node:timers/promises'
import type { Accepted, PlatformInbox } from '../platform.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import type { Logger } from '../../process/log.ts'
import type { UserMessage } from '../replies/engine.ts'
import type { SlackClient } from './client.ts'
import { conversationIdOf, parseEvent, type ChatAddress, type SlackMessage, type SlackSelf } from './parse.ts'
import { readThread, threadContext } from './thread.ts'

export type IncomingParts = {
  readonly client: SlackClient
  readonly allowedUsers: readonly string[]
  readonly log: Logger
  /** Throws while not accepting, so that Slack redelivers. */
  readonly accept: PlatformInbox['accept']
  readonly onAccepted: (conversationId: string, accepted: Accepted, message: UserMessage<ChatAddress>) => void
}

export type Incoming = (body: unknown, self: SlackSelf) => Promise<void>

/** Turns an event into a durable message: checks that it's for us and that its author is allowed, adds the context. */
export const createIncoming = ({ client, allowedUsers, log, accept, onAccepted }: IncomingParts): Incoming => {
  const turns = new Map<string, Promise<unknown>>()

  const receive = async (message: SlackMessage, by: Authorised, self: SlackSelf): Promise<void> => {
    const { channel, ts, threadTs, deliveryId, text } = message
    const isNew = ts === threadTs
    const conversationId = conversationIdOf(message)
    const context = isNew ? undefined : await earlierMessages(client, message, self, log)
    const details = { userId: authorOf(message), channelId: channel, ...(context !== undefined && { context }) }
    const accepted = await accept({ conversationId, deliveryId, kind: 'message', text, details }, by)
    if (accepted.outcome !== 'too-old') onAccepted(conversationId, accepted, { place: { channel, threadTs }, isNew })
  }

  return async (body, self) => {
    const parsed = parseEvent(body, self)
    if ('ignored' in parsed) {
      log.debug('ignored a Slack event', { why: parsed.ignored })
      return
    }
    const { message } = parsed
    const userId = authorOf(message)
    const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
    if (by === undefined) {
      log.warn('ignored a message: its author is not an allowed user', { userId })
      return
    }
    // In order of arrival: reading the context takes longer for some messages.
    const id = conversationIdOf(message)
    const mine = (turns.get(id) ?? Promise.resolve()).then(() => receive(message, by, self))
    const settled = mine.catch(() => undefined)
    turns.set(id, settled)
    try {
      await mine
    } finally {
      if (turns.get(id) === settled) turns.delete(id)
    }
  }
}

/** Users of other workspaces are listed as `T0123/U0456`: a bare user ID belongs to ours. */
const authorOf = ({ user, foreignTeam }: SlackMessage): string =>
  foreignTeam === undefined ? user : `${foreignTeam}/${user}`

/** Slack waits three seconds for an acknowledgement; the context must be read in less. */
const CONTEXT_MS = 2_000

/** The message matters more than its context: if that can't be read, the agent is told so. */
const earlierMessages = async (
  client: SlackClient,
  { channel, ts, threadTs }: SlackMessage,
  self: SlackSelf,
  log: Logger,
): Promise<string | undefined> => {
  const enough = new AbortController()
  try {
    const read = readThread(client, { channel, threadTs }, ts)
    const messages = await Promise.race([read, tooLate(enough.signal)])
    return threadContext(
      messages.filter((message) => message.ts !== ts && Number(message.ts) < Number(ts)),
      self,
    )
  } catch (error) {
    log.warn('earlier messages in a thread could not be read', { channel, error })
    return 'Earlier messages in this Slack thread could not be read.'
  } finally {
    enough.abort()
  }
}

const tooLate = async (signal: AbortSignal): Promise<never> => {
  await delay(CONTEXT_MS, undefined, { signal })
  throw new Error(`Slack took longer than ${CONTEXT_MS} ms`)
}
