import type { MessageState, ReplyState, Role } from '../domain/message.ts'
import type { ConversationKey, InboxMessage, Reply, Store } from '../store/store.ts'

export type HistoryEntry = {
  readonly id: string
  readonly role: 'user' | Role
  readonly text: string
  /** When it was accepted or delivered; of a reply that still waits, when it was recorded. */
  readonly at: number
  readonly state: MessageState | ReplyState
  /** The message that this answers, where it answers one. */
  readonly about?: string
}

/** More of one conversation is not shown at once. */
export const historyLimit = 1_000

/** What was said in a conversation, in order of time, as the records have it. */
export const conversationHistory = async (
  { inbox, outbox }: Pick<Store, 'inbox' | 'outbox'>,
  conversation: ConversationKey,
  { limit = historyLimit, delivered = false }: { readonly limit?: number; readonly delivered?: boolean } = {},
): Promise<HistoryEntry[]> => {
  // One after the other: a message is done in the same transaction that records its reply, so that whoever reads the
  // replies last never sees a message that is done without them.
  const messages = await inbox.ofConversation(conversation, limit)
  const replies = await outbox.ofConversation(conversation, limit)
  return inOrder(
    messages.filter(({ kind }) => kind === 'message'),
    delivered ? replies.filter(({ state }) => state === 'sent') : replies,
  )
}

/**
 * Both lists are in order already and are only dealt into each other. A reply never comes before the message that it
 * answers, whatever a clock that was set back says.
 */
const inOrder = (messages: readonly InboxMessage[], replies: readonly Reply[]): HistoryEntry[] => {
  const entries: HistoryEntry[] = []
  const place = new Map(messages.map(({ id }, index) => [id, index]))
  let next = 0
  const sayUpTo = (isDue: (message: InboxMessage, index: number) => boolean): void => {
    for (let message = messages[next]; message !== undefined && isDue(message, next); message = messages[next]) {
      entries.push(said(message))
      next += 1
    }
  }
  for (const reply of replies) {
    const at = reply.sentAt ?? reply.createdAt
    const question = reply.inboxId === undefined ? undefined : place.get(reply.inboxId)
    sayUpTo((message, index) => message.acceptedAt <= at || (question !== undefined && index <= question))
    const about = reply.inboxId === undefined ? {} : { about: reply.inboxId }
    entries.push({ id: reply.id, role: reply.role, text: reply.text, at, state: reply.state, ...about })
  }
  sayUpTo(() => true)
  return entries
}

const said = ({ id, text, acceptedAt, state }: InboxMessage): HistoryEntry => ({
  id,
  role: 'user',
  text,
  at: acceptedAt,
  state,
})
