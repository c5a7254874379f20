import type { Conversations } from '../../conversations/conversations.ts'
import type { Changes } from '../../conversations/changes.ts'
import { conversationHistory } from '../../platforms/history.ts'
import { localDeliveryId } from '../../platforms/local.ts'
import type { Store } from '../../store/store.ts'
import { answersTo, type Exchange } from './exchange.ts'

export type OwnEngine = {
  readonly conversations: Conversations
  readonly changes: Changes
  readonly store: Store
  /** Starts no message after this one: we exit when it is answered, which would end the other's agent too. */
  readonly upTo: (id: string) => void
}

/** Without a server: runs the message here and records it like a server, so that one can continue. */
export const exchangeHere =
  (open: (conversationId: string) => Promise<OwnEngine>): Exchange =>
  async ({ conversationId, deliveryId, text, codebase, move, agent }, watch, signal) => {
    const { conversations, changes, store, upTo } = await open(conversationId)
    const key = { platform: 'cli', conversationId }
    const unsubscribe = changes.subscribe(watch)
    const onAbort = (): void => void conversations.stopRun(key)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const { id } = await conversations.accept({
        ...key,
        deliveryId: localDeliveryId(conversationId, deliveryId),
        kind: 'message',
        text,
        details: {
          ...(codebase !== undefined && { codebase }),
          ...(move && { move }),
          ...(agent !== undefined && { agent }),
        },
      })
      upTo(id)
      const answered = async (): Promise<ReturnType<typeof answersTo>> =>
        answersTo(await conversationHistory(store, key), id)
      const woken = wakeUps(changes)
      await conversations.start()
      for (;;) {
        const answers = await answered()
        if (answers !== undefined) return answers
        await woken.next()
        // Another process may be done with this conversation.
        conversations.wake()
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      unsubscribe()
      await conversations.stop(0)
    }
  }

/** Another process may handle this conversation, and doesn't notify us. */
const LOOK_MS = 500

const wakeUps = (changes: Changes): { next(): Promise<void> } => {
  let wake = Promise.withResolvers<void>()
  changes.subscribe(({ type }) => {
    if (type === 'message' || type === 'reply') wake.resolve()
  })
  return {
    next: async () => {
      const timer = setTimeout(() => wake.resolve(), LOOK_MS)
      await wake.promise
      clearTimeout(timer)
      wake = Promise.withResolvers()
    },
  }
}
