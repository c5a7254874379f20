import type { Role } from '../domain/message.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { ConversationKey, InboxMessage, Store } from '../store/store.ts'

/** What is to be said about a message. The key makes it said once, however often the message is run. */
export type Said = { readonly key: string; readonly role: Role; readonly text: string }

/** Records what is to be said, in the store that is given: inside a transaction it is said exactly if that commits. */
export const say = async (
  { ids, clock }: Pick<IsolationContext, 'ids' | 'clock'>,
  store: Store,
  to: ConversationKey & { readonly inboxId: string | undefined },
  said: readonly Said[],
): Promise<void> => {
  const now = clock()
  const { platform, conversationId, inboxId } = to
  await store.outbox.append(
    said.map((one) => ({
      ...one,
      id: ids(),
      platform,
      conversationId,
      inboxId,
      nextAttemptAt: now,
      createdAt: now,
    })),
  )
}

export const about = ({
  id,
  platform,
  conversationId,
}: InboxMessage): ConversationKey & { readonly inboxId: string } => ({ platform, conversationId, inboxId: id })
