import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import type { RemoveOutcome } from '../isolation/remove-outcome.ts'
import type { Conversation } from '../store/store.ts'

export type ClosedOutcome =
  | { readonly outcome: 'nothing' }
  /** Other conversations use it. */
  | { readonly outcome: 'kept'; readonly environment: IsolatedEnvironment; readonly others: readonly Conversation[] }
  /** Removal was tried; a refusal is posted in the thread. */
  | { readonly outcome: 'asked'; readonly removal: RemoveOutcome }

/** An issue or PR was closed: detach its conversation, and remove the environment if nobody else uses it. */
export const onConversationClosed = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  provider: Environments,
  conversation: Conversation,
): Promise<ClosedOutcome> => {
  const { id, environmentId } = conversation
  await context.store.conversations.update(id, { closedAt: context.clock() })
  if (environmentId === undefined) return { outcome: 'nothing' }
  const outcome = await keepOrRemove(context, provider, id, environmentId)
  // Last: after a crash before this line, removal is tried again.
  await context.store.conversations.update(id, { environmentId: undefined })
  return outcome
}

const keepOrRemove = async (
  context: Pick<IsolationContext, 'store'>,
  provider: Environments,
  conversationId: string,
  environmentId: EnvironmentId,
): Promise<ClosedOutcome> => {
  const environment = await context.store.environments.get(environmentId)
  if (environment?.status !== 'active') return { outcome: 'nothing' }
  const users = await context.store.conversations.ofEnvironments([environmentId])
  const others = users.filter(({ id }) => id !== conversationId)
  if (others.length > 0) return { outcome: 'kept', environment, others }
  const removal = await provider.destroy(environment, { trigger: 'closed', askedBy: conversationId })
  return { outcome: 'asked', removal }
}
