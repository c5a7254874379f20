import { capabilitiesOf, type KnownPlatforms } from '../domain/platform-capabilities.ts'
import { toWork } from '../domain/work.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { ConversationKey } from '../store/store.ts'

/**
 * A conversation imported under its thread's ID alone gets the platform's full ID once a message tells us: until then
 * we don't know the thread's channel. Its work is found under the full ID too.
 */
export const renameImported = async (
  { store, clock }: Pick<IsolationContext, 'store' | 'clock'>,
  platforms: KnownPlatforms,
  { platform, conversationId }: ConversationKey,
): Promise<void> => {
  const threadId = capabilitiesOf(platforms, platform).threadIdOf?.(conversationId)
  if (threadId === undefined) return
  const renamed = await store.conversations.renameImported({ platform, conversationId }, threadId)
  const environment = renamed?.environmentId && (await store.environments.get(renamed.environmentId))
  if (!environment) return
  await store.environments.addAlias(environment.id, environment.codebaseId, toWork('thread', conversationId), clock())
}
