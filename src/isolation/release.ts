import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { RemovalReason } from '../domain/removal/branch-note.ts'
import type { Conversation, Store } from '../store/store.ts'
import type { IsolationContext } from './context.ts'
import type { RemoveOptions } from './remove-outcome.ts'

/** Stops tracking an environment, inside a transaction. Changes nothing on disk; notifies its conversations. */
export const releaseRow = async (
  { onEnvironmentLost }: Pick<IsolationContext, 'onEnvironmentLost'>,
  store: Store,
  environment: IsolatedEnvironment,
  { askedBy, trigger }: RemoveOptions,
  why: RemovalReason,
): Promise<Conversation[]> => {
  await store.environments.transition(environment.id, environment.status, 'released')
  await store.environments.dropAliases(environment.id)
  await store.ports.release(environment.id)
  const conversations = await store.conversations.detachEnvironment(environment.id)
  await store.items.detachEnvironment(environment.id)
  await onEnvironmentLost(store, {
    environment,
    how: 'released',
    conversations,
    askedBy,
    trigger,
    why,
    branch: undefined,
    leftOut: [],
  })
  return conversations
}
