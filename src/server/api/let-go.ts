import type { ConversationsContext } from '../../conversations/context.ts'
import { closedNotice, removedNotice } from '../../conversations/notices.ts'
import { say } from '../../conversations/replies.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { Released, Removed } from '../../isolation/provider.ts'
import type { Conversation } from '../../store/store.ts'

/** Conversations whose environment went while they were not the ones who asked: their sessions end and they are told. */
export const tellLetGo = async (context: ConversationsContext, outcome: Removed | Released): Promise<void> => {
  const { environment, letGo } = outcome
  // Of an adopted one nothing was removed, and there is nothing to bring back.
  const text =
    outcome.outcome === 'removed'
      ? removedNotice(environment, 'on request')
      : closedNotice({ outcome: 'asked', removal: outcome })
  await tellEach(context, environment, letGo, text)
}

export const tellEach = async (
  { isolation }: ConversationsContext,
  environment: IsolatedEnvironment,
  letGo: readonly Conversation[],
  text: string | undefined,
): Promise<void> => {
  const { store, clock } = isolation
  for (const { id, platform, conversationId } of letGo) {
    await store.sessions.end(id, 'the environment was removed', clock())
    if (text === undefined) continue
    const to = { platform, conversationId, inboxId: undefined }
    await say(isolation, store, to, [{ key: `removed:${environment.id}`, role: 'system', text }])
  }
}
