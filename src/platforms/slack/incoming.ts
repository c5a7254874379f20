import { setTimeout as delay } from 'node:timers/promises'
import { isChatCommand } from '../../conversations/answer-command.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import type { Logger } from '../../process/log.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import type { Accepted, PlatformInbox } from '../platform.ts'
import type { UserMessage } from '../replies/engine.ts'
import type { SlackClient } from './client.ts'
import { type FetchAttachment, readSnippet } from './files.ts'
import type { LatestThread } from './latest-thread.ts'
import {
  authorOf,
  type ChatAddress,
  conversationIdOf,
  isDirect,
  type Parsed,
  type SlackMessage,
  type SlackSelf,
  threadOf,
} from './message/parse.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import { forwardedContext, readThread, threadContext } from './thread.ts'

export type IncomingParts = {
  readonly client: SlackClient
  readonly allowedUsers: readonly string[]
  readonly log: Logger
  readonly latestThread: LatestThread
  readonly fetchAttachment: FetchAttachment
  /** Throws while not accepting, so that Slack redelivers. */
  readonly accept: PlatformInbox['accept']
  readonly onAccepted: (message: SlackMessage, accepted: Accepted, at: InConversation) => Promise<void>
  readonly onStranger: (message: SlackMessage) => void
}

export type InConversation = UserMessage<ChatAddress> & { readonly conversationId: string }

/** Resolves to whether it is a new message, from somebody who is allowed. */
export type Incoming = (parsed: Parsed, self: SlackSelf) => Promise<boolean>

/** Makes a message durable: checks that its author is allowed, and adds the context. */
export const createIncoming = (parts: IncomingParts): Incoming => {
  const { allowedUsers, log, latestThread, accept, onAccepted, onStranger } = parts
  const turns = new Map<string, Promise<unknown>>()

  const receive = async (message: SlackMessage, by: Authorised, self: SlackSelf): Promise<boolean> => {
    const { channel, ts, threadTs, deliveryId } = message
    const earlier = await earlierThread(message, latestThread)
    const conversationId = earlier ?? conversationIdOf(message)
    const isNew = ts === threadTs && earlier === undefined
    const [context, { text, attachments }] = await Promise.all([
      ts === threadTs ? undefined : earlierMessages(parts, message, self),
      contentOf(parts, message),
    ])
    const data = [
      ...(context === undefined ? [] : [context]),
      ...(message.forwarded === undefined ? [] : [forwardedContext(message.forwarded)]),
    ]
    const details = {
      userId: authorOf(message),
      channelId: channel,
      ...(data.length > 0 && { context: data.join('\n\n') }),
      ...(attachments.length > 0 && { attachments }),
    }
    const accepted = await accept({ conversationId, deliveryId, kind: 'message', text, details }, by)
    if (accepted.outcome === 'too-old') return false
    const place = earlier === undefined ? { channel, threadTs } : threadOf(earlier)
    await onAccepted(message, accepted, { conversationId, isNew, ...(place !== undefined && { place }) })
    return accepted.outcome === 'accepted'
  }

  return async (parsed, self) => {
    if ('ignored' in parsed) {
      log.debug('ignored a Slack event', { why: parsed.ignored })
      return false
    }
    const { message } = parsed
    const userId = authorOf(message)
    const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
    if (by === undefined) {
      log.warn('ignored a message: its author is not an allowed user', { userId })
      onStranger(message)
      return false
    }
    // In order of arrival: reading the context takes longer for some messages.
    const id = conversationIdOf(message)
    const mine = (turns.get(id) ?? Promise.resolve()).then(() => receive(message, by, self))
    const settled = mine.catch(() => undefined)
    turns.set(id, settled)
    try {
      return await mine
    } finally {
      if (turns.get(id) === settled) turns.delete(id)
    }
  }
}

/** A command written in a direct message outside its threads is about the latest of them. */
const earlierThread = async (
  { channel, ts, threadTs, text, user }: SlackMessage,
  latestThread: LatestThread,
): Promise<string | undefined> =>
  isDirect(channel) && ts === threadTs && isChatCommand(text) ? latestThread.of(text, channel, user) : undefined

/** Slack waits three seconds for an acknowledgement; everything else must be read in less. */
const READ_MS = 2_000

/** The message matters more than its context: if that can't be read, the agent is told so. */
const earlierMessages = async (
  { client, log }: IncomingParts,
  { channel, ts, threadTs }: SlackMessage,
  self: SlackSelf,
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
  await delay(READ_MS, undefined, { signal })
  throw new Error(`Slack took longer than ${READ_MS} ms`)
}

/** Its text with that of its snippets; one that can't be read in time is a file like any other. */
const contentOf = async (
  { fetchAttachment, log }: IncomingParts,
  { text, attachments, snippets, channel }: SlackMessage,
): Promise<{ readonly text: string; readonly attachments: readonly MessageAttachment[] }> => {
  const signal = AbortSignal.timeout(READ_MS)
  const read = await Promise.all(
    snippets.map(async (snippet) => {
      try {
        return withoutInvisible(await readSnippet(fetchAttachment, snippet, signal)).trim()
      } catch (error) {
        log.warn('a snippet could not be read', { channel, error })
        return snippet
      }
    }),
  )
  const written = [text, ...read.filter((one) => typeof one === 'string')].filter((part) => part !== '').join('\n\n')
  return {
    text: written === '' ? 'See what is attached.' : written,
    attachments: [...attachments, ...read.filter((one) => typeof one !== 'string')],
  }
}
