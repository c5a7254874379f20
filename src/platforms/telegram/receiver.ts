import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { authorise, type Authorised } from '../authorisation.ts'
import type { ButtonData } from '../button-data.ts'
import type { PlatformMemory } from '../memory.ts'
import type { PlatformInbox } from '../platform.ts'
import { tellStranger } from '../stranger-notice.ts'
import type { TelegramApi } from './client.ts'
import { createHeldMessages } from './held-messages.ts'
import { joined } from './join.ts'
import { parseMessage, parsePress, type TelegramSelf, whyNoRequest } from './parse.ts'
import { type TelegramMessage, type TelegramPress, updatePayload } from './payload.ts'

/** Passes on updates, however they arrive. */
export type Receiver = {
  /** Resolves once the update is durable or ignored. */
  update(update: unknown): Promise<void>
  /** Continues with what an earlier process held back. */
  resume(): Promise<void>
  stop(): Promise<void>
}

export type ReceiverParts = {
  readonly api: TelegramApi
  readonly inbox: PlatformInbox
  readonly memory: PlatformMemory
  readonly buttons: ButtonData
  readonly log: Logger
  readonly clock: Clock
  readonly allowed: readonly string[]
  readonly self: TelegramSelf
  /** How long to wait for the rest of a message that may have been split. */
  readonly joinMs: number
  /** Something new, not what was delivered again. A message, unlike a press, is below our last message there. */
  readonly onAccepted: (conversationId: string, kind: 'message' | 'press') => void
}

export const createReceiver = (parts: ReceiverParts): Receiver => {
  const { log, memory, allowed, self } = parts
  const authorised = (id: number | undefined): Authorised | undefined =>
    authorise({ kind: 'listed', userId: id === undefined ? undefined : String(id), allowed })
  const held = createHeldMessages({
    memory,
    log,
    self,
    waitMs: parts.joinMs,
    handOver: (messages) => receiveMessage(parts, messages, authorised(messages[0]?.from?.id)),
  })
  return {
    update: async (update) => {
      const read = updatePayload.safeParse(update)
      const { message, callback_query: press } = read.data ?? {}
      if (press !== undefined) return receivePress(parts, press, authorised(press.from.id))
      if (message === undefined) return log.debug('ignored a Telegram update', { why: 'not a new message' })
      const by = authorised(message.from?.id)
      // In a group the rest of a message doesn't address us itself.
      if (by !== undefined && whyNoRequest(message) === undefined && (await held.take(message, mayOpen(message, self))))
        return
      await receiveMessage(parts, [message], by)
    },
    resume: () => held.resume(),
    stop: () => held.stop(),
  }
}

/** Any picture of an album may have the words that address us. */
const mayOpen = (message: TelegramMessage, self: TelegramSelf): boolean =>
  message.media_group_id !== undefined || !('ignored' in parseMessage(message, self))

const receiveMessage = async (
  parts: ReceiverParts,
  messages: readonly TelegramMessage[],
  by: Authorised | undefined,
): Promise<void> => {
  const { api, inbox, log, self, onAccepted } = parts
  const whole = joined(messages)
  if (whole === undefined) return
  const parsed = parseMessage(whole, self, messages)
  if ('ignored' in parsed) return log.debug('ignored a Telegram update', { why: parsed.ignored })
  const { message, userId } = parsed
  const { chat, message_id: id } = whole
  if (by === undefined) {
    log.warn('ignored a message: its author is not an allowed user', { userId })
    // In a group everybody would read it.
    if (chat.type === 'private') void tellStranger(parts, userId, (text) => api.sendMessage(chat.id, text))
    return
  }
  const { outcome } = await inbox.accept(message, by)
  if (outcome !== 'accepted') return
  onAccepted(message.conversationId, 'message')
  void api.setMessageReaction(chat.id, id, [{ type: 'emoji', emoji: '👀' }]).catch((error: unknown) => {
    log.debug('a message could not be marked as seen', { error })
  })
}

const EXPIRED = 'This button is too old. Write the command instead.'

/** The client shows a progress bar until the press is answered, so that comes first. */
const receivePress = async (parts: ReceiverParts, press: TelegramPress, by: Authorised | undefined): Promise<void> => {
  const { api, inbox, log, buttons, onAccepted } = parts
  const answer = (text?: string): Promise<unknown> =>
    api
      .answerCallbackQuery(press.id, text === undefined ? {} : { text: text.slice(0, MAX_ANSWER), show_alert: true })
      .catch((error: unknown) => log.debug('a press could not be answered', { error }))
  if (by === undefined) {
    const userId = String(press.from.id)
    log.warn('ignored a press: its author is not an allowed user', { userId })
    let isAnswered = false
    await tellStranger(parts, userId, (text) => {
      isAnswered = true
      return answer(text)
    })
    if (!isAnswered) await answer()
    return
  }
  const command = press.data === undefined ? undefined : await buttons.commandOf(press.data)
  const message = command === undefined ? undefined : parsePress(press, command, parts.self)
  void answer(message === undefined ? EXPIRED : undefined)
  if (message === undefined) return
  const { outcome } = await inbox.accept(message, by)
  if (outcome !== 'accepted' || press.message === undefined) return
  onAccepted(message.conversationId, 'press')
  // Without a keyboard: a button works once.
  void api.editMessageReplyMarkup(press.message.chat.id, press.message.message_id).catch((error: unknown) => {
    log.debug('used buttons could not be removed', { error })
  })
}

/** Telegram's limit. */
const MAX_ANSWER = 200
