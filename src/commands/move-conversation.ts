import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { ChatCall } from './command.ts'

/**
 * Moves the conversation to this environment. Its session ends with the change of directory, unless it is to be kept:
 * then the agent's context continues in the new directory.
 */
export const moveTo = async (
  { store, clock, ids }: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  { conversation }: Pick<ChatCall, 'conversation'>,
  environment: IsolatedEnvironment,
  session: 'keep' | 'end',
): Promise<void> => {
  const now = clock()
  await store.transaction(async (inside) => {
    const { id: environmentId, codebaseId, path } = environment
    const bound = { codebaseId, environmentId, lastActivityAt: now, closedAt: undefined }
    await inside.conversations.update(conversation.id, bound)
    const live = await inside.sessions.live(conversation.id)
    if (live === undefined || live.directory === path) return
    if (session === 'end') await inside.sessions.end(conversation.id, 'another worktree', now)
    else await inside.sessions.start({ ...live, id: ids(), directory: path, startedAt: now, lastUsedAt: now })
  })
}
