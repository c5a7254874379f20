import type { ConversationsContext } from '../../conversations/context.ts'
import { removedNotice } from '../../conversations/notices.ts'
import { say } from '../../conversations/replies.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { Conversation } from '../../store/store.ts'

/** Conversations whose environment went while they were not the ones who asked: their sessions end and they are told. */
export const tellLetGo = async (
  { isolation }: ConversationsContext,
  environment: IsolatedEnvironment,
  letGo: readonly Conversation[],
  why: string,
): Promise<void> => {
  const { store, clock } = isolation
  for (const { id, platform, conversationId } of letGo) {
    await store.sessions.end(id, 'the environment was removed', clock())
    const to = { platform, conversationId, inboxId: undefined }
    const text = removedNotice(environment, why)
    await say(isolation, store, to, [{ key: `removed:${environment.id}`, role: 'system', text }])
  }
}
