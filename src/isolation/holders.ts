import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { Holder, HolderKind } from '../domain/holder.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { Fact } from '../domain/removal/reason.ts'
import type { Conversation, Store } from '../store/store.ts'
import type { IsolationContext } from './context.ts'
import type { RemoveOptions } from './provider.ts'

export type HoldQuestion = {
  readonly environment: IsolatedEnvironment
  readonly merged: () => Promise<Merged>
  readonly options: RemoveOptions
}

/** One kind of holder. Removal asks all kinds; to add one, add a line to `holderKinds`. */
type HolderRules = {
  /** The holders that keep the environment, as reasons. Excludes the one that requests the removal. */
  holding(context: IsolationContext, question: HoldQuestion): Promise<readonly Fact[]>
  /** Detaches this holder. */
  clear(store: Store, id: string): Promise<void>
}

const hour = 60 * 60 * 1000

/**
 * A conversation blocks removal for two weeks after its last message (one hour if the work is merged). It also blocks
 * while one of its messages waits or runs, however old: that message will be processed here.
 */
const conversations: HolderRules = {
  holding: async (context, { environment, merged, options }) => {
    const { holdDays, holdMergedHours } = context.settings
    const all = await context.store.conversations.ofEnvironments([environment.id])
    const others = all.filter(({ id }) => id !== options.askedBy)
    if (others.length === 0) return []
    const pending = await context.store.inbox.pending(others)
    const grace = (await merged()).value === 'yes' ? holdMergedHours * hour : holdDays * 24 * hour
    const holds = ({ platform, conversationId, closedAt, lastActivityAt, persistent }: Conversation): boolean => {
      if (pending.some((key) => key.platform === platform && key.conversationId === conversationId)) return true
      // Persistent platforms' environments are the users' own: automation never removes them.
      if (persistent && options.trigger !== 'command') return true
      return closedAt === undefined && context.clock() - lastActivityAt < grace
    }
    return others
      .filter(holds)
      .map(({ platform, conversationId }) => ({ kind: 'conversation', platform, conversationId }))
  },
  clear: (store, id) => store.conversations.update(id, { environmentId: undefined }),
}

const holderKinds: Record<HolderKind, HolderRules> = { conversation: conversations }

export const holdersOf = async (context: IsolationContext, question: HoldQuestion): Promise<Fact[]> =>
  (await Promise.all(Object.values(holderKinds).map((kind) => kind.holding(context, question)))).flat()

export const clearHolder = ({ store }: Pick<IsolationContext, 'store'>, { kind, id }: Holder): Promise<void> =>
  holderKinds[kind].clear(store, id)
