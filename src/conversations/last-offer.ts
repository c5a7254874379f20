import type { InboxMessage, Store } from '../store/store.ts'

export type LastOffer = {
  /** What the key says after its prefix. */
  readonly value: string
  /** The message that it answered. */
  readonly inboxId: string | undefined
}

/**
 * The offer that one word can accept: the last thing that we said here, and said before the message was written. Replies
 * to the message itself don't count, since it may run a second time after a crash.
 */
export const lastOffer = async (
  { outbox }: Pick<Store, 'outbox'>,
  message: Pick<InboxMessage, 'id' | 'platform' | 'conversationId' | 'acceptedAt'>,
  prefix: string,
): Promise<LastOffer | undefined> => {
  const said = await outbox.ofConversation(message, 20)
  const last = said.findLast(({ inboxId }) => inboxId !== message.id)
  if (last?.key.startsWith(prefix) !== true || last.createdAt > message.acceptedAt) return undefined
  return { value: last.key.slice(prefix.length), inboxId: last.inboxId }
}
