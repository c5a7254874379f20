import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Conversation, Store } from '../store/store.ts'
import { removedNotice } from './notices.ts'
import { say } from './replies.ts'

/** A conversation that lost its environment to a removal that another one, or nobody, asked for. */
export type LetGo = {
  readonly conversation: Conversation
  readonly environment: IsolatedEnvironment
  readonly why: string
}

/** They hear of it in their own thread. In a transaction it is recorded exactly if that commits. */
export const tellRemoved = async (
  context: Pick<IsolationContext, 'ids' | 'clock'>,
  store: Store,
  letGo: readonly LetGo[],
): Promise<void> => {
  for (const { conversation, environment, why } of letGo) {
    const { platform, conversationId } = conversation
    await say(context, store, { platform, conversationId, inboxId: undefined }, [
      { key: `removed:${environment.id}`, role: 'system', text: removedNotice(environment, why) },
    ])
  }
}
