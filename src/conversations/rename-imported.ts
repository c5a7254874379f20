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
  const { conversations } = store
  const imported = await conversations.findImported(platform, threadId)
  if (imported?.conversationId !== threadId) return
  if ((await conversations.find(platform, conversationId)) !== undefined) return
  await store.transaction(async (inside) => {
    const environment = imported.environmentId && (await inside.environments.get(imported.environmentId))
    const work = toWork('thread', conversationId)
    // First: it locks the codebase, as everything does that also changes conversations.
    if (environment) await inside.environments.addAlias(environment.id, environment.codebaseId, work, clock())
    await inside.conversations.renameImported({ platform, conversationId }, threadId)
  })
}
