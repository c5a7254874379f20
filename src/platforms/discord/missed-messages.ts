import { ChannelType } from 'discord.js'
import { catchUp } from '../catch-up.ts'
import type { PlatformMemory } from '../memory.ts'
import { addressOf } from './conversation-id.ts'
import { deliveryError } from './errors.ts'
import type { ChannelKind, CreatedMessage } from './parse.ts'
import type { ReceiverParts } from './receiver-parts.ts'
import { isLater } from './snowflake.ts'

const DAY_MS = 24 * 60 * 60_000
const MOST_CONVERSATIONS = 200
/** For us, in one channel. */
const MOST_MESSAGES = 200
/** Most of a busy channel's messages aren't for us. */
const MOST_READ = 10_000
const PAGE = 100

/** Threads and direct messages that were active lately, and the channels of those threads. */
export const placesToRead = async (memory: PlatformMemory, now: number): Promise<readonly string[]> => {
  const recent = await memory.recentConversations(MOST_CONVERSATIONS)
  const places = recent
    .filter(({ lastActivityAt }) => lastActivityAt > now - 30 * DAY_MS)
    .map(({ conversationId }) => addressOf(conversationId))
  return [...new Set(places.flatMap(({ channel, parent }) => (parent === undefined ? [channel] : [channel, parent])))]
}

/** Handles a channel's messages after `since`, oldest first. Throws if that should be tried again. */
export const readMissed = async (
  { api, log, channel: kindOf }: Pick<ReceiverParts, 'api' | 'log' | 'channel'>,
  channel: string,
  since: string,
  handle: (message: CreatedMessage) => Promise<boolean>,
): Promise<void> => {
  try {
    const guild = guildOf(await kindOf(channel))
    const read = async function* (): AsyncGenerator<CreatedMessage> {
      for (let after = since; ;) {
        const page = await api.messages(channel, { limit: PAGE, after })
        for (const message of page.toSorted((a, b) => (isLater(a.id, b.id) ? 1 : -1))) {
          after = message.id
          yield { ...message, ...guild }
        }
        if (page.length < PAGE) return
      }
    }
    // One mark serves all channels, and moves once all are read: a message that is read twice is handled once.
    const lastSeen = { get: async () => since, advance: async () => undefined, advanceLive: async () => undefined }
    const markOf = ({ id }: CreatedMessage): string => id
    const limits = { most: MOST_MESSAGES, mostRead: MOST_READ }
    const { handled, complete } = await catchUp({ lastSeen, place: channel, read, markOf, handle, ...limits })
    if (handled > 0) log.info('read messages that were missed', { channel, handled })
    if (!complete) log.warn('too many messages were missed; the rest is left unread', { channel, handled })
  } catch (error) {
    const failure = deliveryError(error)
    if (failure.kind === 'unreachable') throw failure
    // The thread is still to be created, was deleted, or isn't ours to read any more.
    log.debug('a channel could not be read', { channel, error: failure })
  }
}

/**
 * Unlike an event, a message that is read doesn't say which server it is from, and one from no server counts as
 * private, where everything is for us. So when in doubt it is from a server.
 */
const guildOf = ({ type, guildId }: ChannelKind): { guild_id?: string } =>
  type === ChannelType.DM || type === ChannelType.GroupDM ? {} : { guild_id: guildId ?? 'unknown' }
