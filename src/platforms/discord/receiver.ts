import type { APIInteraction, APIMessage } from 'discord.js'
import { withStoreRetry } from '../../store/with-store-retry.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import type { Logger } from '../../process/log.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import { tellStranger } from '../stranger-notice.ts'
import { commandText } from './commands.ts'
import { addressOf } from './conversation-id.ts'
import { attachmentOf, fetchPaste, isPaste } from './files.ts'
import { acknowledgement, isPress, NOT_SAVED, receiveCommand, receivePress } from './interactions.ts'
import { readMissed } from './missed-messages.ts'
import {
  type ChannelKind,
  type CreatedMessage,
  type DiscordMessage,
  FILE_ONLY,
  isForUs,
  parseMessage,
} from './parse.ts'
import type { ReceiverParts } from './receiver-parts.ts'
import { threadContext } from './thread-context.ts'

/** Passes on events in order. Discord sends each once: an event lost here is lost. */
export type Receiver = {
  message(message: CreatedMessage, self: string): void
  interaction(interaction: APIInteraction): void
  closed(conversationId: string, threadId: string): void
  /** Reads a channel's messages after `since`; new ones there wait until that is done. */
  catchUp(channel: string, since: string, self: string): Promise<void>
  /** Resolves when everything received so far is passed on. */
  settledSoFar(): Promise<void>
  /** Resolves when everything received is passed on. */
  settled(): Promise<void>
}

export const createReceiver = (parts: ReceiverParts): Receiver => {
  const { log, api } = parts
  const lines = new Map<string, Promise<void>>()
  /** Sequentially within a channel, to keep the order. */
  const inOrder = async (channel: string, work: () => Promise<void>): Promise<void> => {
    const mine = (lines.get(channel) ?? Promise.resolve()).then(work)
    const line = mine
      .catch((error: unknown) => log.error('a Discord event could not be processed', { channel, error }))
      .finally(() => {
        if (lines.get(channel) === line) lines.delete(channel)
      })
    lines.set(channel, line)
    return mine
  }
  /** A failure is logged. */
  const queue = (channel: string, work: () => Promise<void>): void => {
    inOrder(channel, work).catch(() => undefined)
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
      if (by !== undefined) queue(message.channel_id, () => receiveMessage(parts, message, by, self))
    },
    interaction: (interaction) => {
      const text = commandText(interaction)
      if (text === undefined && !isPress(interaction)) return
      const userId = interaction.member?.user.id ?? interaction.user?.id
      const by = authorised(userId)
      if (by === undefined) {
        // Discord can only whisper as the answer to an interaction.
        void tellStranger(parts, userId, (words) => api.whisper(interaction, words))
        return
      }
      const channel = interaction.channel?.id ?? ''
      if (isPress(interaction)) return queue(channel, receivePress(parts, interaction, by))
      if (text === undefined) return
      const acknowledged = acknowledgement(parts, interaction, text)
      queue(channel, () => receiveCommand(parts, interaction, by, { text, acknowledged }))
    },
    closed: (conversationId, threadId) => {
      parts.sender.onThreadDeleted(conversationId)
      const closed = { conversationId, deliveryId: `${threadId}:deleted`, details: {} }
      queue(threadId, async () => {
        await withStoreRetry(() => parts.inbox.close(closed), { log, what: 'the end of a Discord thread' })
      })
    },
    catchUp: (channel, since, self) =>
      inOrder(channel, async () => {
        const handle = async (message: CreatedMessage): Promise<boolean> => {
          if (isForUs(message, self).ignored !== undefined) return false
          const by = authorised(message.author.id)
          if (by !== undefined) await receiveMessage(parts, message, by, self)
          return by !== undefined
        }
        await readMissed(parts, channel, since, handle)
      }),
    settledSoFar: async () => {
      await Promise.all(lines.values())
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
    const found = await continued(parts, parsed.message, self)
    const context = await contextOf(parts, found, self)
    const { text, attachments: own } = await contentOf(parts, message, found)
    const attachments = [...own, ...repliedFiles(found)]
    const { conversationId, deliveryId, userId, channelId } = found
    const details = {
      userId,
      ...(channelId !== undefined && { channelId }),
      ...(context !== undefined && { context }),
      ...(attachments.length > 0 && { attachments }),
    }
    const delivery = { conversationId, deliveryId, kind: 'message', text, details } as const
    const accepted = await withStoreRetry(() => inbox.accept(delivery, by), { log, what: 'a message from Discord' })
    if (accepted.outcome !== 'accepted') return
    onAccepted()
    await acknowledge(parts, message, found)
  } catch (error) {
    log.error('a message could not be accepted', { id: message.id, error })
    // Discord doesn't resend it: only its author can.
    const how = { nonce: message.id, replyTo: message.id }
    await parts.api.post(message.channel_id, NOT_SAVED, how)
  }
}

/** Where no thread could be opened, a reply to our answer continues its conversation. */
const continued = async (parts: ReceiverParts, message: DiscordMessage, self: string): Promise<DiscordMessage> => {
  const { repliesTo, threadName } = message
  if (threadName === undefined || repliesTo?.author.id !== self) return message
  const conversationId = await parts.conversationOf(repliesTo.id)
  return conversationId === undefined ? message : { ...message, conversationId, threadName: undefined }
}

/** The client turns a long paste into a file; that is the message then, or the end of it. */
const contentOf = async (
  { log, fileOrigins }: ReceiverParts,
  { id: message, channel_id: channel }: CreatedMessage,
  { text, files }: DiscordMessage,
): Promise<{ readonly text: string; readonly attachments: readonly MessageAttachment[] }> => {
  const paste = files.find(isPaste)
  const pasted =
    paste === undefined
      ? undefined
      : await fetchPaste(paste, fileOrigins).catch((error: unknown) => {
          log.warn('a long message could not be read; it is passed on as a file', { message, error })
        })
  if (pasted === undefined || pasted === '') {
    return { text, attachments: files.map((file) => attachmentOf({ channel, message }, file)) }
  }
  const attachments = files.filter((file) => file !== paste).map((file) => attachmentOf({ channel, message }, file))
  return { text: text === FILE_ONLY ? pasted : `${text}\n\n${pasted}`, attachments }
}

/** "What is wrong here?", below a picture that is already there. */
const repliedFiles = ({ repliesTo: to, userId }: DiscordMessage): readonly MessageAttachment[] =>
  (to?.attachments ?? []).map((file) => ({
    ...attachmentOf({ channel: to?.channel_id ?? '', message: to?.id ?? '' }, file),
    ...(to?.author.id !== userId && { fromOthers: true as const }),
  }))

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

/** The message is durable: say so, open the thread, show that the bot is typing. A reply makes up for failures here. */
const acknowledge = async (
  { api, sender, threads, log }: ReceiverParts,
  { id, channel_id: channel }: CreatedMessage,
  { conversationId, threadName }: DiscordMessage,
): Promise<void> => {
  // Without the permission to add reactions there is none.
  void api.react(channel, id, '👀').catch((error: unknown) => {
    log.debug('a message could not be marked as seen', { error })
  })
  try {
    if (threadName !== undefined) await sender.openThread(conversationId, threadName)
    await api.typing(threads.targetOf(addressOf(conversationId)).channel)
  } catch (error) {
    log.warn('a message could not be acknowledged', { conversationId, error })
  }
}
