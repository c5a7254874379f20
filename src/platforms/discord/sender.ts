import { BoundedMap } from '../../domain/bounded-map.ts'
import { createHash } from 'node:crypto'
import type { APIMessage } from 'discord.js'
import { DeliveryError, type OutgoingMessage } from '../../conversations/delivery.ts'
import { splitReply } from '../../conversations/split.ts'
import type { Clock, Ids } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { DiscordApi } from './client.ts'
import { placeOf } from './conversation-id.ts'
import { answers, deliveryError, isAnswer } from './errors.ts'
import { plainText, threadName } from './parse.ts'
import { createPreviews } from './previews.ts'
import { LONGEST_MESSAGE, renderMarkdown } from './render.ts'

export type Sender = {
  send(message: OutgoingMessage): Promise<void>
  preview(conversationId: string, text: string): void
  /** The thread of a message that was just accepted. */
  begin(conversationId: string, name: string): Promise<void>
  /** Its thread was deleted: it is not made anew. */
  gone(conversationId: string): void
  stop(): void
}

export type SenderParts = {
  readonly api: DiscordApi
  readonly log: Logger
  readonly clock: Clock
  readonly ids: Ids
  readonly previewEveryMs: number
}

/** 100 below Discord's own: a table gets fences around it, a heading its stars. */
export const LIMIT = LONGEST_MESSAGE - 100

/** What a message that is still growing ends with; by it a later process knows one that was left half written. */
const WRITING = '\n-# still writing …'

export const createSender = ({ api, log, clock, ids, previewEveryMs }: SenderParts): Sender => {
  const met = new BoundedMap<string, Promise<void>>(MOST_REMEMBERED)
  const lastSaid = new Map<string, string>()
  const deleted = new Set<string>()
  const previews = createPreviews({
    everyMs: previewEveryMs,
    ids,
    log,
    show: async (conversationId, text, messageId, nonce) => {
      await meet(conversationId)
      const { channel } = placeOf(conversationId)
      const content = renderMarkdown(splitReply(text, LIMIT - WRITING.length).at(-1) ?? '') + WRITING
      if (messageId === undefined) return api.post(channel, content, { nonce: nonceOf(nonce) })
      await api.edit(channel, messageId, content)
      return messageId
    },
  })
  /** Once per conversation and process: is its thread there, and what did a process before this one leave in it? */
  const meet = (conversationId: string): Promise<void> => {
    const known = met.get(conversationId)
    if (known !== undefined) return known
    const meeting = look(conversationId)
    met.set(conversationId, meeting)
    meeting.catch(() => met.delete(conversationId))
    return meeting
  }
  const look = async (conversationId: string): Promise<void> => {
    const found = await newestOrThread(api, conversationId)
    const self = await api.self()
    const others = found.findIndex(({ author }) => author.id !== self)
    const own = others === -1 ? found : found.slice(0, others)
    const half = own.find(({ content }) => content.endsWith(WRITING))
    if (half !== undefined) previews.adopt(conversationId, half.id)
    const last = own.find((message) => message !== half)
    if (last !== undefined && clock() - Date.parse(last.timestamp) < RECENT_MS)
      lastSaid.set(conversationId, last.content.trim())
  }
  const say = async ({ id, conversationId, role, text, part }: OutgoingMessage): Promise<void> => {
    const { channel } = placeOf(conversationId)
    const content = renderMarkdown(text)
    // Discord takes no empty message, and there is nothing to see in one.
    if (content.trim() === '') return
    await meet(conversationId)
    // The process before this one sent it and died before it could record that; the nonce may be forgotten by now.
    const isThere = lastSaid.get(conversationId) === content.trim()
    lastSaid.delete(conversationId)
    if (isThere) return
    const showing = await previews.take(conversationId)
    if (showing !== undefined) {
      try {
        if (role === 'agent' && part === 1) return await api.edit(channel, showing, content)
        // A preview is the last message: whatever else is said takes its place, and it comes again below.
        await api.remove(channel, showing)
      } catch (error) {
        if (!isAnswer(error, answers.unknownMessage)) {
          previews.adopt(conversationId, showing)
          throw error
        }
      }
    }
    await api.post(channel, content, { nonce: nonceOf(id) })
  }
  return {
    send: async (message) => {
      if (deleted.has(message.conversationId)) throw new DeliveryError('refused', 'the thread was deleted')
      try {
        await say(message)
      } catch (error) {
        throw deliveryError(error)
      }
    },
    preview: (conversationId, text) => previews.update(conversationId, text),
    begin: async (conversationId, name) => {
      const { channel, parent } = placeOf(conversationId)
      if (parent === undefined || met.has(conversationId)) return
      const beginning = api.startThread(parent, channel, name)
      met.set(conversationId, beginning)
      try {
        await beginning
      } catch (error) {
        // One that is there already was perhaps spoken in: it has to be looked at.
        met.delete(conversationId)
        if (!isAnswer(error, answers.threadExists)) throw error
      }
    },
    gone: (conversationId) => {
      deleted.add(conversationId)
    },
    stop: () => previews.stop(),
  }
}

/** More conversations than this are looked at again when they are next spoken in. */
const MOST_REMEMBERED = 10_000
const RECENT_MS = 15 * 60_000
const LOOK_BACK = 20

/** The newest messages; of a thread that is not there yet, none, and then it is there. */
const newestOrThread = async (api: DiscordApi, conversationId: string): Promise<APIMessage[]> => {
  const { channel, parent } = placeOf(conversationId)
  try {
    return await api.messages(channel, { limit: LOOK_BACK })
  } catch (error) {
    if (parent === undefined || !isAnswer(error, answers.unknownChannel)) {
      // Somebody took the permission to read what was said before; what is to be said now may be possible all the same.
      if (deliveryError(error).kind === 'refused') return []
      throw error
    }
  }
  const first = await api.message(parent, channel)
  await api.startThread(parent, channel, threadName(plainText(first, await api.self()))).catch((error: unknown) => {
    if (!isAnswer(error, answers.threadExists)) throw error
  })
  return []
}

/** Discord takes 25 characters. */
const nonceOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 24)
