import { createHash } from 'node:crypto'
import type { APIMessage } from 'discord.js'
import type { Clock } from '../../domain/clock.ts'
import type { ReplyPort } from '../replies/port.ts'
import type { DiscordApi } from './client.ts'
import { type ChatAddress, addressOf } from './conversation-id.ts'
import { errorCodes, deliveryError, hasErrorCode } from './errors.ts'
import { plainText, threadName } from './parse.ts'
import { MAX_MESSAGE, renderMarkdown } from './render.ts'

/** 100 below Discord's limit: a table gets fences, a heading its stars. */
export const LIMIT = MAX_MESSAGE - 100

/** Ends a preview; a later process recognises an unfinished one by it. */
const PREVIEW_SUFFIX = '\n-# still writing …'

export type ReplyPortParts = { readonly api: DiscordApi; readonly clock: Clock; readonly previewEveryMs: number }

/**
 * Replies are messages in threads and channels. A nonce prevents duplicates for some minutes; after a restart the last
 * message is compared.
 */
export const discordReplies = ({ api, clock, previewEveryMs }: ReplyPortParts): ReplyPort<ChatAddress, string> => ({
  placeOf: addressOf,
  // Discord limits per route and channel, and 50 requests a second for a bot. A thread is a channel.
  rateLimitOf: ({ channel }, call) => ({
    name: `${call} ${channel}`,
    everyMs: previewEveryMs,
    within: { name: channel, everyMs: previewEveryMs, within: { name: 'bot', everyMs: BOT_MS } },
  }),
  render: renderMarkdown,
  post: ({ channel }, content, { id }) => api.post(channel, content, { nonce: nonceOf(channel, id) }),
  edit: ({ channel }, id, content) => api.edit(channel, id, content),
  delete: ({ channel }, id) => api.remove(channel, id),
  find: async (place) => {
    const found = await newestOrThread(api, place)
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
const newestOrThread = async (api: DiscordApi, { channel, parent }: ChatAddress): Promise<APIMessage[]> => {
  try {
    return await api.messages(channel, { limit: LOOK_BACK })
  } catch (error) {
    if (parent === undefined || !hasErrorCode(error, errorCodes.unknownChannel)) throw error
  }
  const first = await api.message(parent, channel)
  await openThread(api, { channel, parent }, threadName(plainText(first, await api.self())))
  return []
}

/** False: it existed already, and may have messages. */
export const openThread = async (api: DiscordApi, { channel, parent }: ChatAddress, name: string): Promise<boolean> => {
  if (parent === undefined) return false
  try {
    await api.startThread(parent, channel, name)
    return true
  } catch (error) {
    if (hasErrorCode(error, errorCodes.threadExists)) return false
    throw error
  }
}

/** Discord's limit is 25 characters. */
const nonceOf = (channel: string, id: string): string =>
  createHash('sha256').update(`${channel} ${id}`).digest('base64url').slice(0, 24)
