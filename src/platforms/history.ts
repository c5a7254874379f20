import type { MessageState, ReplyState, Role } from '../domain/message.ts'
import type { ConversationKey, InboxMessage, Reply, Store } from '../store/store.ts'

export type HistoryEntry = {
  readonly id: string
  readonly role: 'user' | Role
  readonly text: string
  /** When it was accepted or delivered; for an undelivered reply, when it was recorded. */
  readonly at: number
  readonly state: MessageState | ReplyState
  /** The message that this replies to, if any. */
  readonly about?: string
}

/** The most messages returned at once. */
export const historyLimit = 1_000

/** A conversation's messages and replies from the store, by time. */
export const conversationHistory = async (
  { inbox, outbox }: Pick<Store, 'inbox' | 'outbox'>,
  conversation: ConversationKey,
  { limit = historyLimit, delivered = false }: { readonly limit?: number; readonly delivered?: boolean } = {},
): Promise<HistoryEntry[]> => {
  // Sequentially: a message is marked done in the transaction that records its reply, so reading the replies last never
  // shows a message as done without them.
  const messages = await inbox.ofConversation(conversation, limit)
  const replies = await outbox.ofConversation(conversation, limit)
  return mergeByTime(
    messages.filter(({ kind }) => kind === 'message'),
    delivered ? replies.filter(({ state }) => state === 'sent') : replies,
  )
}

/**
 * Merges two sorted lists. A reply never comes before the message that it answers, even if the clock was set back.
 */
const mergeByTime = (messages: readonly InboxMessage[], replies: readonly Reply[]): HistoryEntry[] => {
  const entries: HistoryEntry[] = []
  const indexOf = new Map(messages.map(({ id }, index) => [id, index]))
  let next = 0
  const pushWhile = (isDue: (message: InboxMessage, index: number) => boolean): void => {
    for (let message = messages[next]; message !== undefined && isDue(message, next); message = messages[next]) {
      entries.push(entryOf(message))
      next += 1
    }
  }
  for (const reply of replies) {
    const at = reply.sentAt ?? reply.createdAt
    const question = reply.inboxId === undefined ? undefined : indexOf.get(reply.inboxId)
    pushWhile((message, index) => message.acceptedAt <= at || (question !== undefined && index <= question))
    const about = reply.inboxId === undefined ? {} : { about: reply.inboxId }
    entries.push({ id: reply.id, role: reply.role, text: reply.text, at, state: reply.state, ...about })
  }
  pushWhile(() => true)
  return entries
}

const entryOf = ({ id, text, acceptedAt, state }: InboxMessage): HistoryEntry => ({
  id,
  role: 'user',
  text,
  at: acceptedAt,
  state,
})
