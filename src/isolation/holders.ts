import type { IsolatedEnvironment } from '../domain/environment.ts'
import { isSettled } from '../domain/fleet/item.ts'
import type { Holder, HolderKind } from '../domain/holder.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { Fact } from '../domain/removal/reason.ts'
import type { Conversation, Store } from '../store/store.ts'
import type { IsolationContext } from './context.ts'
import type { RemoveOptions } from './remove-outcome.ts'

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
 * A conversation blocks removal until it is stale (one hour after its last message if the work is merged). It also
 * blocks while one of its messages waits or runs, however old: that message will be processed here. An environment that
 * a persistent chat has ever used is its user's own, wherever the chat works now: only a command for it removes it, or
 * a cleanup that the chat which works there asks for.
 */
const conversations: HolderRules = {
  holding: async (context, { environment, merged, options }) => {
    const { staleDays, holdMergedHours } = context.settings
    const isUnasked = options.trigger !== 'command'
    const all = await context.store.conversations.ofEnvironments([environment.id])
    const isOwners = isCleanup(options) && all.some(({ id, persistent }) => persistent && id === options.askedBy)
    const owner: Fact[] = environment.persistent === true && isUnasked && !isOwners ? [{ kind: 'persistent' }] : []
    const others = all.filter(({ id }) => id !== options.askedBy)
    if (others.length === 0) return owner
    const pending = await context.store.inbox.pending(others)
    const untilStale = staleDays * 24 * hour
    const grace = (await merged()).value === 'yes' ? Math.min(holdMergedHours * hour, untilStale) : untilStale
    const holds = ({ platform, conversationId, closedAt, lastActivityAt, persistent }: Conversation): boolean =>
      pending.some((key) => key.platform === platform && key.conversationId === conversationId) ||
      (persistent && isUnasked) ||
      (closedAt === undefined && context.clock() - lastActivityAt < grace)
    const holding = others.filter(holds)
    // A chat that still works there is named instead.
    return [
      ...(holding.some(({ persistent }) => persistent) ? [] : owner),
      ...holding.map(({ platform, conversationId }): Fact => ({ kind: 'conversation', platform, conversationId })),
    ]
  },
  clear: (store, id) => store.conversations.update(id, { environmentId: undefined }),
}

/** A cleanup that a conversation asks for was typed by a person; the schedule and the limit name no asker. */
const isCleanup = ({ trigger }: RemoveOptions): boolean => trigger === 'merged' || trigger === 'stale'

/** An item holds its environment until it is settled, for its agent or for a person's decision. */
const items: HolderRules = {
  holding: async ({ store }, { environment, options }) => {
    const held = (await store.items.ofEnvironments([environment.id])).filter(
      ({ id, state }) => !isSettled(state) && itemHolder(id) !== options.askedBy,
    )
    return [...held.map(({ id }): Fact => ({ kind: 'item', id })), ...(await crewOf(store, environment, options))]
  },
  clear: (store, id) => store.items.update(Number(id.slice(ITEM.length)), { environmentId: undefined }),
}

/** Only a person removes a crew member's environment. */
const crewOf = async (
  store: Store,
  { work, host }: IsolatedEnvironment,
  { askedBy }: RemoveOptions,
): Promise<Fact[]> => {
  const owner = work.type === 'agent' ? await store.fleetAgents.byName(host, work.id) : undefined
  return owner?.kind === 'crew' && askedBy !== owner.id ? [{ kind: 'crew', name: owner.name }] : []
}

const ITEM = 'item:'

/** The item as a holder, so that a removal on its behalf isn't blocked by it. */
export const itemHolder = (id: number): string => `${ITEM}${id}`

const holderKinds: Record<HolderKind, HolderRules> = { conversation: conversations, item: items }

export const holdersOf = async (context: IsolationContext, question: HoldQuestion): Promise<Fact[]> =>
  (await Promise.all(Object.values(holderKinds).map((kind) => kind.holding(context, question)))).flat()

export const clearHolder = ({ store }: Pick<IsolationContext, 'store'>, { kind, id }: Holder): Promise<void> =>
  holderKinds[kind].clear(store, id)
