import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Isolation } from '../isolation/isolation.ts'
import type { RemoveOutcome } from '../isolation/provider.ts'
import type { Conversation } from '../store/store.ts'

export type ClosedOutcome =
  | { readonly outcome: 'nothing' }
  /** Others use it: it stays for them. */
  | { readonly outcome: 'kept'; readonly environment: IsolatedEnvironment; readonly others: readonly Conversation[] }
  /** The gates were asked; a refusal is said in the thread. */
  | { readonly outcome: 'asked'; readonly removal: RemoveOutcome }

/** An issue or PR was closed or merged: its conversation lets go, and the environment goes if nobody else uses it. */
export const onConversationClosed = async (
  context: Pick<IsolationContext, 'store' | 'clock'>,
  provider: Isolation,
  conversation: Conversation,
): Promise<ClosedOutcome> => {
  const { id, environmentId } = conversation
  await context.store.conversations.update(id, { closedAt: context.clock() })
  if (environmentId === undefined) return { outcome: 'nothing' }
  const outcome = await keepOrRemove(context, provider, id, environmentId)
  // Last: a crash before this line finds the reference again and asks again.
  await context.store.conversations.update(id, { environmentId: undefined })
  return outcome
}

const keepOrRemove = async (
  context: Pick<IsolationContext, 'store'>,
  provider: Isolation,
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
