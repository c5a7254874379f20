import type { ReplyAction, Role } from '../../domain/message.ts'
import { capabilitiesOf, type LoadPlatforms } from '../../domain/platform-capabilities.ts'
import { hideLocalDetails } from '../../domain/text/hide-local-details.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Redact } from '../../process/redaction/redact.ts'
import type { ConversationKey, InboxMessage, Store } from '../../store/store.ts'

/** A reply to a message. The key keeps it unique, however often the message is run. */
export type NewReply = {
  readonly key: string
  readonly role: Role
  readonly text: string
  readonly actions?: readonly ReplyAction[]
}

/** For sending replies. Includes redaction, so that no caller can forget it. */
export type ReplyContext = {
  readonly isolation: Pick<IsolationContext, 'ids' | 'clock'>
  readonly redact: Redact
  readonly platforms: LoadPlatforms
}

/** Records replies in the given store: inside a transaction, they are sent exactly if it commits. */
export const recordReplies = async (
  { isolation: { ids, clock }, redact, platforms }: ReplyContext,
  store: Store,
  to: ConversationKey & { readonly inboxId: string | undefined },
  said: readonly NewReply[],
): Promise<void> => {
  const now = clock()
  const { platform, conversationId, inboxId } = to
  const known = await platforms()
  const isPublic = capabilitiesOf(known, platform).reach === 'repository'
  await store.outbox.append(
    said.map((one) => ({
      ...one,
      text: redact(one.role === 'system' && isPublic ? hideLocalDetails(one.text, known) : one.text),
      id: ids(),
      platform,
      conversationId,
      inboxId,
      nextAttemptAt: now,
      createdAt: now,
    })),
  )
}

export const replyTarget = ({
  id,
  platform,
  conversationId,
}: InboxMessage): ConversationKey & { readonly inboxId: string } => ({ platform, conversationId, inboxId: id })
