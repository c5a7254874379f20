import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Logger } from '../../process/log.ts'
import type { ReplyPort } from '../replies/port.ts'
import { isUnchanged, movedTo, type TelegramApi, toDeliveryError } from './client.ts'
import { isGroup, type ChatAddress, addressOf } from './conversation-id.ts'
import { sendAsHtml } from './send-as-html.ts'

/** Telegram's limit is 4,096 after rendering. */
export const LIMIT = 3_500

export type ReplyPortParts = {
  readonly api: TelegramApi
  readonly log: Logger
  /** Doubled in groups, where Telegram allows 20 messages a minute. */
  readonly previewEveryMs: number
}

/**
 * Replies are messages in chats. Telegram has nothing to recognise one by; but an edit can be repeated, so a reply that
 * was previewed arrives once.
 */
export const telegramReplies = ({ api, log, previewEveryMs }: ReplyPortParts): ReplyPort<ChatAddress, number> => {
  /** A group that became a supergroup has a new id. */
  const moved = new BoundedMap<number, number>(1_000)
  const chatOf = ({ chat }: ChatAddress): number => moved.get(chat) ?? chat
  const post = async (place: ChatAddress, text: string): Promise<number> => {
    const { thread } = place
    const sent = await sendAsHtml(text, log, (words, how) =>
      api.sendMessage(chatOf(place), words, {
        ...noLinkPreview,
        ...how,
        ...(thread !== undefined && { message_thread_id: thread }),
      }),
    )
    return sent.message_id
  }
  return {
    placeOf: addressOf,
    // A flood wait applies to the chat, not the topic. All chats together: about 30 messages a second.
    rateLimitOf: (place) => ({
      name: String(chatOf(place)),
      everyMs: previewEveryMs * (isGroup(place) ? 2 : 1),
      within: { name: 'bot', everyMs: BOT_MS },
    }),
    render: (text) => text,
    post: async (place, text) => {
      try {
        return await post(place, text)
      } catch (error) {
        const chat = movedTo(error)
        if (chat === undefined) throw error
        moved.set(place.chat, chat)
        return post(place, text)
      }
    },
    edit: async (place, message, text) => {
      try {
        await sendAsHtml(text, log, (words, how) =>
          api.editMessageText(chatOf(place), message, words, { ...noLinkPreview, ...how }),
        )
      } catch (error) {
        if (!isUnchanged(error)) throw error
      }
    },
    delete: async (place, message) => {
      await api.deleteMessage(chatOf(place), message)
    },
    failureOf: (error) => ({ error: toDeliveryError(error), mayHaveSucceeded: false }),
    previews: {
      limit: LIMIT - 10,
      render: (markdown) => `${markdown} …`,
      firstMs: previewEveryMs,
      whenOvertaken: 'repost',
    },
  }
}

/** All previews together: half of what Telegram allows. */
const BOT_MS = 70

/** No link previews below an agent's text. */
const noLinkPreview = { link_preview_options: { is_disabled: true } } as const
