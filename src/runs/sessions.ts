import type { IsolationContext } from '../isolation/context.ts'
import type { Session } from '../store/store.ts'
import type { RunHolder } from './request.ts'

/**
 * The holder's session, if agent and directory are unchanged; otherwise a new one. A session ends when the directory
 * changes, since it refers to files that aren't here.
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
