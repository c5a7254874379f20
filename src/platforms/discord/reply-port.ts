import { createHash } from 'node:crypto'
import type { APIMessage } from 'discord.js'
import type { Clock } from '../../domain/clock.ts'
import type { ButtonData } from '../button-data.ts'
import type { ReplyPort } from '../replies/port.ts'
import { buttonRows } from './buttons.ts'
import type { DiscordApi } from './client.ts'
import { type ChatAddress, addressOf, conversationIdOf } from './conversation-id.ts'
import { errorCodes, deliveryError, hasErrorCode } from './errors.ts'
import { plainText, threadName } from './parse.ts'
import { MAX_MESSAGE, renderMarkdown } from './render.ts'
import type { Threads } from './threads.ts'

/** 100 below Discord's limit: a table gets fences, a heading its stars. */
export const LIMIT = MAX_MESSAGE - 100

/** Ends a preview; a later process recognises an unfinished one by it. */
const PREVIEW_SUFFIX = '\n-# still writing …'

export type ReplyPortParts = {
  readonly api: DiscordApi
  readonly clock: Clock
  readonly buttons: ButtonData
  readonly threads: Threads
  readonly previewEveryMs: number
  /** A message of ours in a channel that belongs to one of several conversations there. */
  readonly onPostedInChannel: (id: string, conversationId: string) => Promise<void>
}

/**
 * Replies are messages in threads and channels. A nonce prevents duplicates for some minutes; after a restart the last
 * message is compared.
 */
export const discordReplies = ({
  api,
  clock,
  buttons,
  threads,
  previewEveryMs,
  onPostedInChannel,
}: ReplyPortParts): ReplyPort<ChatAddress, string> => ({
  placeOf: addressOf,
  // Discord limits per route and channel, and 50 requests a second for a bot. A thread is a channel.
  rateLimitOf: (place, call) => {
    const { channel } = threads.targetOf(place)
    return {
      name: `${call} ${channel}`,
      everyMs: previewEveryMs,
      within: { name: channel, everyMs: previewEveryMs, within: { name: 'bot', everyMs: BOT_MS } },
    }
  },
  render: renderMarkdown,
  post: async (place, content, { id }, actions) => {
    const { channel, replyTo } = threads.targetOf(place)
    const components = await buttonRows(actions, buttons)
    const posted = await api.post(channel, content, { nonce: nonceOf(place.channel, id), replyTo, components })
    if (replyTo !== undefined) await onPostedInChannel(posted, conversationIdOf(place))
    return posted
  },
  edit: async (place, id, content, _mark, actions) =>
    api.edit(threads.targetOf(place).channel, id, content, await buttonRows(actions, buttons)),
  delete: (place, id) => api.remove(threads.targetOf(place).channel, id),
  find: async (place) => {
    const found = await newestOrThread(api, threads, place)
    const self = await api.self()
    const others = found.findIndex(({ author }) => author.id !== self)
    const own = others === -1 ? found : found.slice(0, others)
    const unfinished = own.find(({ content }) => content.endsWith(PREVIEW_SUFFIX))
    const last = own.find((message) => message !== unfinished)
    const isRecent = last !== undefined && clock() - Date.parse(last.timestamp) < RECENT_MS
    // An earlier process may have sent it and died before recording that, and the nonce may have expired. It can only
    // be the first reply that we are asked for: the same text again is another reply.
    let lastText = isRecent ? last.content.trim() : undefined
    const has = (_id: string, content: string): boolean => {
      const isThere = lastText === content.trim()
      lastText = undefined
      return isThere
    }
    return { has, preview: unfinished?.id }
  },
  postsOnce: true,
  failureOf: (error) => ({ error: deliveryError(error), mayHaveSucceeded: true }),
  previews: {
    limit: LIMIT - PREVIEW_SUFFIX.length,
    render: (markdown) => renderMarkdown(markdown) + PREVIEW_SUFFIX,
    firstMs: previewEveryMs,
    whenOvertaken: 'remove',
  },
})

/** All previews together: half of what Discord allows. */
const BOT_MS = 40

const RECENT_MS = 15 * 60_000
const LOOK_BACK = 20

/** The newest messages; creates the thread if it doesn't exist yet. */
const newestOrThread = async (api: DiscordApi, threads: Threads, place: ChatAddress): Promise<APIMessage[]> => {
  const { channel, parent } = place
  // Several conversations share the channel: which messages are this one's isn't known, so only the nonce protects.
  if (threads.targetOf(place).replyTo !== undefined) return []
  try {
    return await api.messages(channel, { limit: LOOK_BACK })
  } catch (error) {
    if (parent === undefined || !hasErrorCode(error, errorCodes.unknownChannel)) throw error
  }
  const first = await api.message(parent, channel)
  await threads.open(place, threadName(plainText(first, await api.self())))
  return []
}

/** Discord's limit is 25 characters. */
const nonceOf = (channel: string, id: string): string =>
  createHash('sha256').update(`${channel} ${id}`).digest('base64url').slice(0, 24)
