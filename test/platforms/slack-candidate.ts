import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { SECRET, slackScene } from './slack-arrange.ts'
import { BOT, mentionOf, signedRequest } from './slack-double.ts'

type Delivered = { readonly conversationId: string; readonly deliveryId: string; readonly text: string }

/** The suite's only conversation is this thread; its ids are not Slack's, so each is said in the other's words. */
const SUITE = { conversationId: 'conversation-1', deliveryId: 'delivery-1' }
const THREAD = { channel: 'C1', ts: '1700000000.000100' }
const EVENT = 'Ev1'

/** For the suite over all platforms: Slack with both ways in, over a Slack on loopback; events come by signed HTTP. */
export const slackCandidate = async () => {
  const { slack, platform, [Symbol.asyncDispose]: close } = await slackScene()
  const theirs = (message: OutgoingMessage): OutgoingMessage => ({
    ...message,
    conversationId: `${THREAD.channel}:${THREAD.ts}`,
  })
  const adapted: Platform = {
    ...platform,
    start: (inbox) =>
      platform.start({
        ...inbox,
        accept: (order, by) => {
          const { conversationId } = order
          const isOurs = conversationId === `${THREAD.channel}:${THREAD.ts}` && order.deliveryId === conversationId
          return inbox.accept(isOurs ? { ...order, ...SUITE } : order, by)
        },
      }),
    send: (message) => platform.send(theirs(message)),
  }
  return {
    platform: adapted,
    deliver: async ({ text }: Delivered): Promise<void> => {
      const said = { ...THREAD, thread_ts: undefined, user: 'U1', text: `<@${BOT.user}> ${text}`, metadata: undefined }
      const answer = await platform.webhook?.(signedRequest(mentionOf(said, EVENT), SECRET))
      if (answer?.status !== 200) throw new Error(`answered ${answer?.status}`)
    },
    deliverFromStranger: async (text: string): Promise<void> => {
      const said = { ...THREAD, thread_ts: undefined, user: 'U9', text: `<@${BOT.user}> ${text}`, metadata: undefined }
      await platform.webhook?.(signedRequest(mentionOf(said, 'Ev9'), SECRET))
    },
    arrived: () =>
      slack.messages
        .filter(({ user }) => user === BOT.user)
        .map(({ text }) => ({ conversationId: SUITE.conversationId, text })),
    sendsOnce: true,
    breakService: (how: 'refused' | 'unreachable') =>
      slack.fail('chat.postMessage', [how === 'refused' ? { error: 'is_archived' } : { status: 503 }], true),
    close: () => close(),
  }
}
