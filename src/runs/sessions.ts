import type { IsolationContext } from '../isolation/context.ts'
import type { Session } from '../store/store.ts'
import type { RunHolder } from './request.ts'

/**
 * The session to resume: the holder's own, while agent and directory are the same; else a new one. It ends
 * when the working directory changes, since what the agent remembers is about files that are not here.
 */
export const sessionFor = async (
  { store, clock, ids }: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  holder: Pick<RunHolder, 'id'>,
  agent: string,
  directory: string,
): Promise<Session> => {
  const live = await store.sessions.live(holder.id)
  if (live?.agent === agent && live.directory === directory) return live
  const now = clock()
  const session: Session = {
    id: ids(),
    conversation: holder.id,
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
