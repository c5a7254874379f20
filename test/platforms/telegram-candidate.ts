import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { until } from '../helpers/server-process.ts'
import { telegramScene } from './telegram-arrange.ts'
import { ada, group, mallory } from './telegram-double.ts'

type Delivered = { readonly conversationId: string; readonly deliveryId: string; readonly text: string }

/** The suite's only conversation is this chat; its ids are not Telegram's, so each is said in the other's words. */
const SUITE = { conversationId: 'conversation-1', deliveryId: 'delivery-1' }
const UPDATE = 4_711

/** For the suite over all platforms: long polling. Asking for what comes after an update is what acknowledges it. */
export const telegramCandidate = async () => {
  const { telegram, platform, [Symbol.asyncDispose]: close } = await telegramScene()
  const theirs = (message: OutgoingMessage): OutgoingMessage => ({ ...message, conversationId: String(ada.id) })
  const adapted: Platform = {
    ...platform,
    start: async (inbox) => {
      await platform.start({
        ...inbox,
        accept: (order, by) => {
          const isOurs = order.conversationId === String(ada.id)
          return inbox.accept(isOurs ? { ...order, ...SUITE } : order, by)
        },
      })
      await until('Telegram is being asked', async () => telegram.polls > 0 || undefined)
    },
    stop: async () => {
      await platform.stop()
      await until('nobody asks any more', async () => telegram.polls === 0 || undefined)
    },
    send: (message) => platform.send(theirs(message)),
  }
  return {
    platform: adapted,
    deliver: async ({ text }: Delivered): Promise<void> => {
      if (telegram.polls === 0) throw new Error('nobody asks')
      const before = telegram.calls.length
      telegram.say(text, { updateId: UPDATE })
      await until('the update is confirmed, or asked for again', async () => {
        const asked = telegram.calls.slice(before).find(({ method }) => method === 'getUpdates')
        if (asked === undefined) return undefined
        if (asked.payload['offset'] !== UPDATE + 1) throw new Error('not confirmed')
        return true
      })
    },
    deliverFromStranger: async (text: string): Promise<void> => {
      // Where others read along: in private a stranger is told that they are one.
      telegram.say(`@coppice_bot ${text}`, { from: mallory, chat: group })
      await until('the update is confirmed', async () => telegram.waiting.length === 0 || undefined)
    },
    arrived: () =>
      [ada, group]
        .flatMap(({ id }) => telegram.said(id))
        .map((text) => ({ conversationId: SUITE.conversationId, text })),
    // Telegram has nothing by which a message could be known again: at least once.
    sendsOnce: false,
    breakService: (how: 'refused' | 'unreachable') => {
      telegram.fail = (method) =>
        method !== 'sendMessage'
          ? undefined
          : how === 'refused'
            ? { how, code: 403, description: 'Forbidden: bot was blocked by the user' }
            : { how: 'page', status: 502 }
    },
    close: () => close(),
  }
}
