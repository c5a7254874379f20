import type { APIInteraction, APIMessage } from 'discord.js'
import { withStoreRetry } from '../../store/with-store-retry.ts'
import type { Ids } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import type { PlatformInbox } from '../platform.ts'
import type { DiscordApi } from './client.ts'
import { commandText } from './commands.ts'
import { conversationIdOf, addressOf } from './conversation-id.ts'
import { type ChannelKind, type CreatedMessage, type DiscordMessage, isForUs, parseMessage } from './parse.ts'
import type { Sender } from './sender.ts'
import { threadContext } from './thread-context.ts'

/** Passes on events in order. Discord sends each once: an event lost here is lost. */
export type Receiver = {
  message(message: CreatedMessage, self: string): void
  interaction(interaction: APIInteraction): void
  closed(conversationId: string, threadId: string): void
  /** Resolves when everything received is passed on. */
  settled(): Promise<void>
}

export type ReceiverParts = {
  readonly api: DiscordApi
  readonly sender: Sender
  readonly inbox: PlatformInbox
  readonly log: Logger
  readonly ids: Ids
  readonly allowed: readonly string[]
  readonly channel: (id: string) => Promise<ChannelKind>
  readonly onAccepted: () => void
}

export const createReceiver = (parts: ReceiverParts): Receiver => {
  const { log } = parts
  const lines = new Map<string, Promise<void>>()
  /** Sequentially within a channel, to keep the order. */
  const inOrder = (channel: string, work: () => Promise<void>): void => {
    const line = (lines.get(channel) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) => log.error('a Discord event could not be processed', { channel, error }))
      .finally(() => {
        if (lines.get(channel) === line) lines.delete(channel)
      })
    lines.set(channel, line)
  }
  const authorised = (userId: string | undefined): Authorised | undefined => {
    const by = authorise({ kind: 'listed', userId, allowed: parts.allowed })
    if (by === undefined) log.info('ignored a message: its author is not an allowed user', { userId })
    return by
  }
  return {
    message: (message, self) => {
      if (isForUs(message, self).ignored !== undefined) return
      const by = authorised(message.author.id)
      if (by !== undefined) inOrder(message.channel_id, () => receiveMessage(parts, message, by, self))
    },
    interaction: (interaction) => {
      const text = commandText(interaction)
      if (text === undefined) return
      const by = authorised(interaction.member?.user.id ?? interaction.user?.id)
      if (by === undefined) return
      const acknowledged = acknowledgement(parts, interaction, text)
      inOrder(interaction.channel?.id ?? '', () => receiveCommand(parts, interaction, by, { text, acknowledged }))
    },
    closed: (conversationId, threadId) => {
      parts.sender.onThreadDeleted(conversationId)
      const closed = { conversationId, deliveryId: `${threadId}:deleted`, details: {} }
      inOrder(threadId, async () => {
        await withStoreRetry(() => parts.inbox.close(closed), { log, what: 'the end of a Discord thread' })
      })
    },
    settled: async () => {
      while (lines.size > 0) await Promise.all(lines.values())
    },
  }
}

const receiveMessage = async (
  parts: ReceiverParts,
  message: CreatedMessage,
  by: Authorised,
  self: string,
): Promise<void> => {
  const { inbox, log, channel, onAccepted } = parts
  try {
    const where = await channelOf(message, channel, log)
    const parsed = parseMessage(message, self, where)
    if ('ignored' in parsed) return log.info('a message was ignored', { id: message.id, why: parsed.ignored })
    const context = await contextOf(parts, parsed.message, self)
    const { conversationId, deliveryId, text, userId, channelId } = parsed.message
    const details = { userId, ...(channelId !== undefined && { channelId }), ...(context !== undefined && { context }) }
    const delivery = { conversationId, deliveryId, kind: 'message', text, details } as const
    await withStoreRetry(() => inbox.accept(delivery, by), { log, what: 'a message from Discord' })
    onAccepted()
    await acknowledge(parts, parsed.message)
  } catch (error) {
    log.error('a message could not be accepted', { id: message.id, error })
    // Discord doesn't resend it: only its author can.
    const how = { nonce: message.id, replyTo: message.id }
    await parts.api.post(message.channel_id, NOT_SAVED, how)
  }
}

const NOT_SAVED = "Couldn't save this message, so nothing will happen. Send it again in a minute."

const channelOf = (
  { guild_id, channel_id }: CreatedMessage,
  channel: ReceiverParts['channel'],
  log: Logger,
): Promise<ChannelKind | undefined> =>
  guild_id === undefined
    ? Promise.resolve(undefined)
    : withStoreRetry(() => channel(channel_id), { log, what: 'where a Discord message was said' })

/** Earlier messages in the thread, and the one it replies to. A failure here must not lose the message. */
const contextOf = async (
  { api, log }: ReceiverParts,
  { conversationId, deliveryId, threadName, repliesTo }: DiscordMessage,
  self: string,
): Promise<string | undefined> => {
  const { channel, parent } = addressOf(conversationId)
  const isOldThread = parent !== undefined && threadName === undefined
  const earlier: Pick<APIMessage, 'id' | 'author' | 'content' | 'mentions'>[] = isOldThread
    ? await api.messages(channel, { limit: 50, before: deliveryId }).catch((error: unknown) => {
        log.warn('earlier messages in a thread could not be read', { conversationId, error })
        return []
      })
    : []
  if (repliesTo !== undefined && !earlier.some(({ id }) => id === repliesTo.id)) earlier.push(repliesTo)
  return threadContext(earlier, self)
}

/** The message is durable: open the thread, show that the bot is typing. A reply makes up for failures here. */
const acknowledge = async (
  { api, sender, log }: ReceiverParts,
  { conversationId, threadName }: DiscordMessage,
): Promise<void> => {
  try {
    if (threadName !== undefined) await sender.openThread(conversationId, threadName)
    await api.typing(addressOf(conversationId).channel)
  } catch (error) {
    log.warn('a message could not be acknowledged', { conversationId, error })
  }
}

const receiveCommand = async (
  { inbox, log, onAccepted }: ReceiverParts,
  { id, channel }: APIInteraction,
  by: Authorised,
  { text, acknowledged }: { readonly text: string; readonly acknowledged: (content: string) => Promise<void> },
): Promise<void> => {
  if (channel?.id === undefined) return
  const parent = 'parent_id' in channel && 'thread_metadata' in channel ? (channel.parent_id ?? undefined) : undefined
  const details = {
    ...(by.userId !== undefined && { userId: by.userId }),
    ...(parent !== undefined && { channelId: parent }),
  }
  const conversationId = conversationIdOf({ channel: channel.id, parent })
  try {
    const delivery = { conversationId, deliveryId: id, kind: 'message', text, details } as const
    await withStoreRetry(() => inbox.accept(delivery, by), { log, what: 'a command from Discord' })
    onAccepted()
  } catch (error) {
    log.error('a command could not be accepted', { id, error })
    return acknowledged(NOT_SAVED)
  }
  // Discord shows only the command's name; the reply follows as a separate message.
  await acknowledged(`\`${text.replaceAll('`', "'")}\``)
}

/** Discord waits three seconds. If the command isn't durable by then, it is deferred and acknowledged later. */
const acknowledgement = (
  { api, log }: ReceiverParts,
  interaction: APIInteraction,
  text: string,
): ((content: string) => Promise<void>) => {
  let deferred: Promise<void> | undefined
  const timer = setTimeout(() => {
    deferred = api.acknowledge(interaction, undefined)
    deferred.catch((error: unknown) => log.warn('a command could not be acknowledged', { text, error }))
  }, DEFER_AFTER_MS)
  return async (content) => {
    clearTimeout(timer)
    if (deferred === undefined) return api.acknowledge(interaction, content)
    await deferred.catch(() => undefined)
    await api.editAcknowledgement(interaction, content)
  }
}

const DEFER_AFTER_MS = 2_000
