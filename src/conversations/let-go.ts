import type { IsolationContext, LostEnvironment } from '../isolation/context.ts'
import type { Store } from '../store/store.ts'
import { releasedNotice, removedNotice } from './notices.ts'
import { say } from './replies.ts'

/**
 * A removal took the environment from these conversations. Their sessions were about files that are gone; the one that
 * asked knows from its answer, the others hear of it in their own threads. All of it in the removal's own transaction.
 */
export const createOnLetGo =
  (context: Pick<IsolationContext, 'ids' | 'clock'>): IsolationContext['onLetGo'] =>
  async (store: Store, { environment, how, conversations, askedBy, why }: LostEnvironment) => {
    for (const { id, platform, conversationId } of conversations) {
      await store.sessions.end(id, `worktree ${how}`, context.clock())
      if (id === askedBy) continue
      const text = how === 'removed' ? removedNotice(environment, why) : releasedNotice(environment)
      await say(context, store, { platform, conversationId, inboxId: undefined }, [
        { key: `lost:${environment.id}`, role: 'system', text },
      ])
    }
  }
