import { createHash } from 'node:crypto'
import type { APIMessage } from 'discord.js'
import { splitReply } from '../../conversations/outbox/split.ts'
import type { Clock } from '../../domain/clock.ts'
import type { ReplyPort } from '../replies/port.ts'
import type { DiscordApi } from './client.ts'
import { type Place, placeOf } from './conversation-id.ts'
import { answers, deliveryError, isAnswer } from './errors.ts'
import { plainText, threadName } from './parse.ts'
import { LONGEST_MESSAGE, renderMarkdown } from './render.ts'

/** 100 below Discord's own: a table gets fences around it, a heading its stars. */
export const LIMIT = LONGEST_MESSAGE - 100

/** What a message that is still growing ends with; by it a later process knows one that was left half written. */
const WRITING = '\n-# still writing …'

export type ReplyPortParts = { readonly api: DiscordApi; readonly clock: Clock; readonly previewEveryMs: number }

/**
 * Replies are messages in threads and channels. A nonce makes posting repeatable for some minutes; after a restart the
 * last message there is compared.
 */
export const discordReplies = ({ api, clock, previewEveryMs }: ReplyPortParts): ReplyPort<Place, string> => ({
  placeOf,
  // Discord counts per route and channel; a thread is a channel.
  unitOf: ({ channel }, call) => ({ name: `${call} ${channel}`, everyMs: previewEveryMs }),
  render: renderMarkdown,
  post: ({ channel }, content, { id }) => api.post(channel, content, { nonce: nonceOf(channel, id) }),
  edit: ({ channel }, id, content) => api.edit(channel, id, content),
  delete: ({ channel }, id) => api.remove(channel, id),
  find: async (place) => {
    const found = await newestOrThread(api, place)
    const self = await api.self()
    const others = found.findIndex(({ author }) => author.id !== self)
    const own = others === -1 ? found : found.slice(0, others)
    const half = own.find(({ content }) => content.endsWith(WRITING))
    const last = own.find((message) => message !== half)
    const isRecent = last !== undefined && clock() - Date.parse(last.timestamp) < RECENT_MS
    // The process before this one sent it and died before it could record that; the nonce may be forgotten by now. It
    // can only have been the first one that we are asked for: the same words again are another reply.
    let lastSaid = isRecent ? last.content.trim() : undefined
    const has = (_id: string, content: string): boolean => {
      const isThere = lastSaid === content.trim()
      lastSaid = undefined
      return isThere
    }
    return { has, preview: half?.id }
  },
  postsOnce: true,
  failureOf: (error) => ({ error: deliveryError(error), unclear: true }),
  previews: {
    render: (text) => renderMarkdown(splitReply(text, LIMIT - WRITING.length).at(-1) ?? '') + WRITING,
    firstMs: previewEveryMs,
    whenOvertaken: 'remove',
  },
})

const RECENT_MS = 15 * 60_000
const LOOK_BACK = 20

/** The newest messages; of a thread that is not there yet, none, and then it is there. */
const newestOrThread = async (api: DiscordApi, { channel, parent }: Place): Promise<APIMessage[]> => {
  try {
    return await api.messages(channel, { limit: LOOK_BACK })
  } catch (error) {
    if (parent === undefined || !isAnswer(error, answers.unknownChannel)) throw error
  }
  const first = await api.message(parent, channel)
  await openThread(api, { channel, parent }, threadName(plainText(first, await api.self())))
  return []
}

/** False: it was there already, and something may have been said in it. */
export const openThread = async (api: DiscordApi, { channel, parent }: Place, name: string): Promise<boolean> => {
  if (parent === undefined) return false
  try {
    await api.startThread(parent, channel, name)
    return true
  } catch (error) {
    if (isAnswer(error, answers.threadExists)) return false
    throw error
  }
}

/** Discord takes 25 characters. */
const nonceOf = (channel: string, id: string): string =>
  createHash('sha256').update(`${channel} ${id}`).digest('base64url').slice(0, 24)
