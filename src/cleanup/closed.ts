import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { IsolationProvider, RemoveOutcome } from '../isolation/provider.ts'
import type { Conversation } from '../store/store.ts'

export type ClosedOutcome =
  | { readonly outcome: 'nothing' }
  /** Others use it: it stays for them. */
  | { readonly outcome: 'kept'; readonly environment: IsolatedEnvironment; readonly others: readonly Conversation[] }
  /** The gates were asked; a refusal is said in the thread. */
  | { readonly outcome: 'asked'; readonly removal: RemoveOutcome }

/** An issue or PR was closed or merged: its conversation lets go, and the environment goes if nobody else uses it. */
export const onConversationClosed = async (
  context: IsolationContext,
  provider: IsolationProvider,
  conversation: Conversation,
): Promise<ClosedOutcome> => {
  const { environmentId } = conversation
  await context.store.conversations.update(conversation.id, { environmentId: undefined, closedAt: context.clock() })
  if (environmentId === undefined) return { outcome: 'nothing' }
  const environment = await context.store.environments.get(environmentId)
  if (environment === undefined || environment.status !== 'active') return { outcome: 'nothing' }
  const others = await context.store.conversations.ofEnvironments([environmentId])
  if (others.length > 0) return { outcome: 'kept', environment, others }
  return { outcome: 'asked', removal: await provider.destroy(environment, { trigger: 'closed' }) }
}
