import { type APIAttachment, type APIMessage, ChannelType, MessageType } from 'discord.js'
import { withoutInvisible } from '../../domain/text/visible.ts'
import { conversationIdOf } from './conversation-id.ts'
import { mentions, withNames, withoutLeadingMention } from './text.ts'

/** A message for us. Whether its author is allowed is decided elsewhere. */
export type DiscordMessage = {
  readonly deliveryId: string
  readonly conversationId: string
  /** The thread's parent. */
  readonly channelId: string | undefined
  readonly userId: string
  readonly text: string
  /** Set if this message starts a thread. */
  readonly threadName: string | undefined
  /** The message it replies to. */
  readonly repliesTo: APIMessage | undefined
  readonly files: readonly APIAttachment[]
}

export type Parsed = { readonly message: DiscordMessage } | { readonly ignored: string }

/** A MESSAGE_CREATE event: the message, and its server if any. */
export type CreatedMessage = APIMessage & { readonly guild_id?: string }

/** The relevant part of a channel. Where this is undefined, it's a direct message. */
export type ChannelKind = {
  readonly type: ChannelType
  readonly parentId: string | undefined
  /** Undefined in private. */
  readonly guildId?: string | undefined
}

/** Whether a message is for us; checked before any lookup. */
export const isForUs = (message: CreatedMessage, self: string): { readonly ignored?: string } => {
  if (message.author.id === self) return { ignored: 'our own message' }
  if (message.author.bot === true || message.author.system === true) return { ignored: 'written by a bot' }
  if (message.webhook_id !== undefined || message.application_id !== undefined)
    return { ignored: 'written by a program' }
  // Pins, joins, thread starters and the like are messages too.
  if (message.type !== MessageType.Default && message.type !== MessageType.Reply) return { ignored: 'a system message' }
  // Edits are another event, which we don't handle; this one was edited before it reached us.
  if (message.edited_timestamp !== null && message.edited_timestamp !== undefined) return { ignored: 'edited' }
  if (message.guild_id === undefined) return {}
  // A reply with the ping left on doesn't address us, though Discord lists it as a mention.
  if (!message.mentions.some(({ id }) => id === self)) return { ignored: 'not addressed to us' }
  return mentions(message.content, self) ? {} : { ignored: 'mentioned only in code, in a quote or by a reply' }
}

/** Parses a message, or returns why it is ignored. `channel` is where it was posted; undefined: in private. */
export const parseMessage = (message: CreatedMessage, self: string, channel: ChannelKind | undefined): Parsed => {
  const { ignored } = isForUs(message, self)
  if (ignored !== undefined) return { ignored }
  // Missing where Discord hides the content from us.
  const files = message.attachments ?? []
  const text = plainText(message, self) || (files.length + repliedFiles(message).length === 0 ? '' : FILE_ONLY)
  if (text === '') return { ignored: 'without text' }
  const place = placeFor(message, channel)
  if (place === undefined) return { ignored: 'in a channel without threads' }
  return {
    message: {
      deliveryId: message.id,
      conversationId: conversationIdOf(place),
      channelId: place.parent,
      userId: message.author.id,
      text,
      threadName: place.channel === message.id ? threadName(text) : undefined,
      repliesTo: message.referenced_message ?? undefined,
      files,
    },
  }
}

const repliedFiles = ({ referenced_message: to }: CreatedMessage): readonly APIAttachment[] => to?.attachments ?? []

/** What an agent is asked where somebody sends a file and no words. */
export const FILE_ONLY = 'See the attached file.'

/** The text as people read it. */
export const plainText = (message: Pick<APIMessage, 'content' | 'mentions'>, self: string): string => {
  const names = new Map(message.mentions.map(({ id, username }) => [id, username]))
  return withoutInvisible(withNames(withoutLeadingMention(message.content, self), names)).trim()
}

const threads: readonly ChannelType[] = [
  ChannelType.PublicThread,
  ChannelType.PrivateThread,
  ChannelType.AnnouncementThread,
]
const withThreads: readonly ChannelType[] = [ChannelType.GuildText, ChannelType.GuildAnnouncement]

/** A thread started from a message has that message's id, so it's known before the thread exists. */
const placeFor = (
  { id, channel_id, guild_id }: CreatedMessage,
  channel: ChannelKind | undefined,
): { channel: string; parent: string | undefined } | undefined => {
  if (guild_id === undefined || channel === undefined) return { channel: channel_id, parent: undefined }
  if (threads.includes(channel.type)) return { channel: channel_id, parent: channel.parentId }
  return withThreads.includes(channel.type) ? { channel: id, parent: channel_id } : undefined
}

/** Discord allows 100 characters; a name is one line. */
export const threadName = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim() || 'A question'
  return line.length <= MAX_NAME ? line : `${sliceWhole(line, MAX_NAME - 1).trimEnd()}…`
}

const MAX_NAME = 100

/** Never splits a surrogate pair. */
const sliceWhole = (text: string, length: number): string => text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')
