import { setTimeout as delay } from 'node:timers/promises'
import type { Accepted, PlatformInbox } from '../platform.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import type { Logger } from '../../process/log.ts'
import type { Heard } from '../replies/engine.ts'
import type { SlackClient } from './client.ts'
import { conversationIdOf, parseEvent, type Place, type SlackMessage, type SlackSelf } from './parse.ts'
import { readThread, threadContext } from './thread.ts'

export type IncomingParts = {
  readonly client: SlackClient
  readonly allowedUsers: readonly string[]
  readonly log: Logger
  /** Throws while nothing is accepted: then Slack shall deliver it again. */
  readonly accept: PlatformInbox['accept']
  readonly onAccepted: (conversationId: string, accepted: Accepted, heard: Heard<Place>) => void
}

export type Incoming = (body: unknown, self: SlackSelf) => Promise<void>

/** From an event to a message that is durable: is it for us, is its author allowed, what was said before. */
export const createIncoming = ({ client, allowedUsers, log, accept, onAccepted }: IncomingParts): Incoming => {
  const turns = new Map<string, Promise<unknown>>()

  const take = async (message: SlackMessage, by: Authorised, self: SlackSelf): Promise<void> => {
    const { channel, ts, threadTs, deliveryId, text } = message
    const isNew = ts === threadTs
    const conversationId = conversationIdOf(message)
    const context = isNew ? undefined : await earlierWords(client, message, self, log)
    const details = { userId: authorOf(message), channelId: channel, ...(context !== undefined && { context }) }
    const accepted = await accept({ conversationId, deliveryId, kind: 'message', text, details }, by)
    if (accepted.outcome !== 'too-old') onAccepted(conversationId, accepted, { place: { channel, threadTs }, isNew })
  }

  return async (body, self) => {
    const parsed = parseEvent(body, self)
    if ('ignored' in parsed) {
      log.debug('an event of Slack is not for us', { why: parsed.ignored })
      return
    }
    const { message } = parsed
    const userId = authorOf(message)
    const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
    if (by === undefined) {
      log.warn('ignored a message: its author is not an allowed user', { userId })
      return
    }
    // In the order in which they came: what was said before takes longer to read for one than for another.
    const id = conversationIdOf(message)
    const mine = (turns.get(id) ?? Promise.resolve()).then(() => take(message, by, self))
    const settled = mine.catch(() => undefined)
    turns.set(id, settled)
    try {
      await mine
    } finally {
      if (turns.get(id) === settled) turns.delete(id)
    }
  }
}

/** Somebody of another workspace is listed with it, `T0123/U0456`: a user id alone is one of ours. */
const authorOf = ({ user, foreignTeam }: SlackMessage): string =>
  foreignTeam === undefined ? user : `${foreignTeam}/${user}`

/** Slack waits three seconds for an acknowledgement: what was said before has to be read in less. */
const CONTEXT_MS = 2_000

/** What was asked counts more than what was said before: without that it goes on, and the agent is told so. */
const earlierWords = async (
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
    log.warn('earlier messages of a thread could not be read', { channel, error })
    return 'Earlier messages of this Slack thread could not be read.'
  } finally {
    enough.abort()
  }
}

const tooLate = async (signal: AbortSignal): Promise<never> => {
  await delay(CONTEXT_MS, undefined, { signal })
  throw new Error(`Slack took longer than ${CONTEXT_MS} ms`)
}
