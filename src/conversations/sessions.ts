import type { ConversationsContext } from './context.ts'
import type { Conversation, Session } from '../store/store.ts'

/**
 * The session to go on with: the conversation's own, while agent and directory are the same; else a new one. It ends
 * when the working directory changes, since what the agent remembers is about files that are not here.
 */
export const sessionFor = async (
  { isolation }: Pick<ConversationsContext, 'isolation'>,
  conversation: Conversation,
  agent: string,
  directory: string,
): Promise<Session> => {
  const { store, clock, ids } = isolation
  const live = await store.sessions.live(conversation.id)
  if (live?.agent === agent && live.directory === directory) return live
  const now = clock()
  const session: Session = {
    id: ids(),
    conversation: conversation.id,
    agent,
    agentSessionId: undefined,
    directory,
    startedAt: now,
    lastUsedAt: now,
    endedAt: undefined,
    endReason: undefined,
  }
  await store.sessions.start(session)
  return session
}
