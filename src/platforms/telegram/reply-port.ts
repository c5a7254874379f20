import { BoundedMap } from '../../domain/bounded-map.ts'
import type { ReplyAction } from '../../domain/message.ts'
import type { Logger } from '../../process/log.ts'
import type { ButtonData } from '../button-data.ts'
import type { ReplyPort } from '../replies/port.ts'
import { isUnchanged, movedTo, type TelegramApi, toDeliveryError } from './client.ts'
import { isGroup, type ChatAddress, addressOf } from './conversation-id.ts'
import { sendAsHtml } from './send-as-html.ts'

/** Telegram's limit is 4,096 after rendering. */
export const LIMIT = 3_500

/** Telegram's limit for what a button sends back. */
export const MAX_BUTTON_BYTES = 64

export type ReplyPortParts = {
  readonly api: TelegramApi
  readonly log: Logger
  readonly buttons: ButtonData
  /** Doubled in groups, where Telegram allows 20 messages a minute. */
  readonly previewEveryMs: number
}

/**
 * Replies are messages in chats. Telegram has nothing to recognise one by; but an edit can be repeated, so a reply that
 * was previewed arrives once.
 */
export const telegramReplies = ({
  api,
  log,
  buttons,
  previewEveryMs,
}: ReplyPortParts): ReplyPort<ChatAddress, number> => {
  /** A group that became a supergroup has a new id. */
  const moved = new BoundedMap<number, number>(1_000)
  const chatOf = ({ chat }: ChatAddress): number => moved.get(chat) ?? chat
  const post = async (place: ChatAddress, text: string, actions: readonly ReplyAction[]): Promise<number> => {
    const { thread } = place
    const keyboard = await keyboardOf(actions, buttons)
    const sent = await sendAsHtml(text, log, (words, how) =>
      api.sendMessage(chatOf(place), words, {
        ...noLinkPreview,
        ...how,
        ...keyboard,
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
    post: async (place, text, _mark, actions) => {
      try {
        return await post(place, text, actions)
      } catch (error) {
        const chat = movedTo(error)
        if (chat === undefined) throw error
        moved.set(place.chat, chat)
        return post(place, text, actions)
      }
    },
    edit: async (place, message, text, _mark, actions) => {
      // Without a keyboard, Telegram removes the one that is there.
      const keyboard = await keyboardOf(actions, buttons)
      try {
        await sendAsHtml(text, log, (words, how) =>
          api.editMessageText(chatOf(place), message, words, { ...noLinkPreview, ...how, ...keyboard }),
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

const BUTTONS_PER_ROW = 3
/** In characters; a phone would cut longer ones beside others. */
const LONGEST_BESIDE = 20

const keyboardOf = async (actions: readonly ReplyAction[], buttons: ButtonData) => {
  if (actions.length === 0) return {}
  const all = await Promise.all(
    actions.map(async ({ label, command }) => ({ text: label, callback_data: await buttons.dataOf(command) })),
  )
  const perRow = all.every(({ text }) => text.length <= LONGEST_BESIDE) ? BUTTONS_PER_ROW : 1
  const rows = Map.groupBy(all.entries(), ([at]) => Math.floor(at / perRow))
  return { reply_markup: { inline_keyboard: [...rows.values()].map((row) => row.map(([, button]) => button)) } }
}
