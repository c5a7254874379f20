import { type APIMessage, ChannelType, MessageType } from 'discord.js'
import { withoutInvisible } from '../visible.ts'
import { conversationIdOf } from './conversation-id.ts'
import { mentions, withNames, withoutCall } from './text.ts'

/** A message that is meant for us. Whether its author is allowed is decided elsewhere. */
export type DiscordMessage = {
  readonly deliveryId: string
  readonly conversationId: string
  /** What the thread is in. */
  readonly channelId: string | undefined
  readonly userId: string
  readonly text: string
  /** Of a thread that this very message is to begin. */
  readonly threadName: string | undefined
  /** Words of others that came with it: what it replies to. */
  readonly repliesTo: Pick<APIMessage, 'id' | 'author' | 'content' | 'mentions'> | undefined
}

export type Parsed = { readonly message: DiscordMessage } | { readonly ignored: string }

/** What MESSAGE_CREATE brings: a message, and where it was said if that is a server. */
export type CreatedMessage = APIMessage & { readonly guild_id?: string }

/** A channel as far as it matters here. Undefined where it was: a direct message. */
export type ChannelKind = { readonly type: ChannelType; readonly parentId: string | undefined }

/** Who speaks, whether it is for us at all: to be asked before anything is looked up. */
export const isForUs = (message: CreatedMessage, self: string): { readonly ignored?: string } => {
  if (message.author.id === self) return { ignored: 'said by ourselves' }
  if (message.author.bot === true || message.author.system === true) return { ignored: 'said by a bot' }
  if (message.webhook_id !== undefined || message.application_id !== undefined) return { ignored: 'said by a program' }
  // Pins, joins, thread starters and their like are messages too.
  if (message.type !== MessageType.Default && message.type !== MessageType.Reply)
    return { ignored: 'not said by anyone' }
  // An edit comes as another event, which is not listened to; this is one that was edited before it reached us.
  if (message.edited_timestamp !== null && message.edited_timestamp !== undefined) return { ignored: 'edited' }
  if (message.guild_id === undefined) return {}
  // Whoever replies to us with the ping left on has not called us; Discord lists that as a mention too.
  if (!message.mentions.some(({ id }) => id === self)) return { ignored: 'not addressed to us' }
  return mentions(message.content, self) ? {} : { ignored: 'mentioned in code, in a quotation or by a reply only' }
}

/** A message as an order, or the reason why it is none. `channel` is where it was said; undefined: in private. */
export const parseMessage = (message: CreatedMessage, self: string, channel: ChannelKind | undefined): Parsed => {
  const { ignored } = isForUs(message, self)
  if (ignored !== undefined) return { ignored }
  const text = plainText(message, self)
  if (text === '') return { ignored: 'without words' }
  const place = whereTo(message, channel)
  if (place === undefined) return { ignored: 'said where there are no threads' }
  return {
    message: {
      deliveryId: message.id,
      conversationId: conversationIdOf(place),
      channelId: place.parent,
      userId: message.author.id,
      text,
      threadName: place.channel === message.id ? threadName(text) : undefined,
      repliesTo: message.referenced_message ?? undefined,
    },
  }
}

/** What was said, as people read it. */
export const plainText = (message: Pick<APIMessage, 'content' | 'mentions'>, self: string): string => {
  const names = new Map(message.mentions.map(({ id, username }) => [id, username]))
  return withoutInvisible(withNames(withoutCall(message.content, self), names)).trim()
}

const threads: readonly ChannelType[] = [
  ChannelType.PublicThread,
  ChannelType.PrivateThread,
  ChannelType.AnnouncementThread,
]
const haveThreads: readonly ChannelType[] = [ChannelType.GuildText, ChannelType.GuildAnnouncement]

/** A thread begun from a message has that message's id: it is known before the thread is there. */
const whereTo = (
  { id, channel_id, guild_id }: CreatedMessage,
  channel: ChannelKind | undefined,
): { channel: string; parent: string | undefined } | undefined => {
  if (guild_id === undefined || channel === undefined) return { channel: channel_id, parent: undefined }
  if (threads.includes(channel.type)) return { channel: channel_id, parent: channel.parentId }
  return haveThreads.includes(channel.type) ? { channel: id, parent: channel_id } : undefined
}

/** Discord takes 100 characters; a name is one line. */
export const threadName = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim() || 'A question'
  return line.length <= LONGEST_NAME ? line : `${sliceWhole(line, LONGEST_NAME - 1).trimEnd()}…`
}

const LONGEST_NAME = 100

/** Never between the halves of one character. */
const sliceWhole = (text: string, length: number): string => text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')
