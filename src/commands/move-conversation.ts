import type { IsolatedEnvironment } from '../domain/environment.ts'
import { placeKey } from '../domain/notice.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { type LinkedWork, moveWork, type WorkToMove } from '../isolation/resolve/move-work.ts'
import type { ChatCall } from './command.ts'

/**
 * Moves the conversation to this environment. Its session ends with the change of directory, unless it is to be kept:
 * then the agent's context continues in the new directory. `work`: is found there from then on, too.
 */
export const moveTo = async (
  { store, clock, ids }: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  { conversation }: Pick<ChatCall, 'conversation'>,
  environment: IsolatedEnvironment,
  session: 'keep' | 'end',
  work?: WorkToMove,
): Promise<LinkedWork | undefined> => {
  const now = clock()
  return store.transaction(async (inside) => {
    const { id: environmentId, codebaseId, path } = environment
    // First: it locks the codebase, as everything does that also changes conversations.
    const linked = work && (await moveWork(inside, work, environmentId, now))
    const bound = { codebaseId, environmentId, lastActivityAt: now, closedAt: undefined }
    await inside.conversations.update(conversation.id, bound)
    // The answer says so.
    await inside.conversations.tellOnce(conversation.id, placeKey(environmentId), now)
    const live = await inside.sessions.live(conversation.id)
    if (live === undefined || live.directory === path) return linked
    if (session === 'end') await inside.sessions.end(conversation.id, 'another worktree', now)
    else await inside.sessions.start({ ...live, id: ids(), directory: path, startedAt: now, lastUsedAt: now })
    return linked
  })
}
