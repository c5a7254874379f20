import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Conversation } from '../../store/store.ts'
import { type LetGo, tellRemoved } from '../let-go.ts'
import type { Call } from './command.ts'

/** Who asked, for those who are told. */
export const askerOf = ({ chat }: Pick<Call, 'chat'>): string =>
  chat === undefined ? 'the command line' : `${chat.conversation.platform}:${chat.conversation.conversationId}`

/**
 * A removal let go of these conversations. Their sessions were about files that are gone; the one that asked knows from
 * its answer, the others hear of it in their own threads.
 */
export const passOnLetGo = async (
  { chat }: Pick<Call, 'chat'>,
  context: IsolationContext,
  environment: IsolatedEnvironment,
  conversations: readonly Conversation[],
  why: string,
): Promise<void> => {
  const { store, clock } = context
  // The one that asked is not among those that a removal names.
  const own = chat?.conversation.environmentId === environment.id ? [chat.conversation] : []
  for (const { id } of [...own, ...conversations]) await store.sessions.end(id, 'worktree removed', clock())
  const others = conversations
    .filter(({ id }) => id !== chat?.conversation.id)
    .map((conversation): LetGo => ({ conversation, environment, why }))
  if (chat === undefined) await store.transaction((inside) => tellRemoved(context, inside, others))
  else chat.letGo.push(...others)
}
