import type { AgentUsage } from '../agents/agent.ts'
import type { Settings } from '../domain/config.ts'
import { counted } from '../domain/words.ts'
import type { Conversation, InboxMessage, Session, Store } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import type { Said } from './replies.ts'

/** What was spent: money in millionths of a dollar, as far as agents say so, and turns, of which each run has one or more. */
export type Spent = { readonly micros: number; readonly turns: number }

export type Budget = {
  readonly conversation: Spent
  readonly day: Spent
  /** Undefined: none. Raises are in them. */
  readonly limits: {
    readonly conversationMicros: number | undefined
    readonly dayMicros: number | undefined
    readonly conversationTurns: number | undefined
    readonly dayTurns: number | undefined
  }
}

type Parts = Pick<ConversationsContext['isolation'], 'settings' | 'clock'>

export const budgetOf = async (
  { settings, clock }: Parts,
  store: Store,
  conversation: Pick<Conversation, 'id'>,
): Promise<Budget> => {
  const since = dayBegan(clock())
  const [here, today, raisedHere, raisedToday] = [
    await store.usage.spent({ conversation: conversation.id }),
    await store.usage.spent({ since }),
    await store.usage.raised({ conversation: conversation.id }),
    await store.usage.raised({ since }),
  ]
  return {
    conversation: here,
    day: today,
    limits: {
      conversationMicros: sum(micros(settings.budgetConversationUsd), raisedHere.micros),
      dayMicros: sum(micros(settings.budgetDayUsd), raisedToday.micros),
      conversationTurns: sum(settings.budgetConversationTurns, raisedHere.turns),
      dayTurns: sum(settings.budgetDayTurns, raisedToday.turns),
    },
  }
}

/**
 * Looked at before each run, and no run is broken off for it: half a turn costs as much as a whole one and leaves less.
 * At the limit the message is not run. It is answered with the question and kept, so that it blocks nothing.
 */
export const pausedByBudget = async (
  { isolation }: Pick<ConversationsContext, 'isolation'>,
  message: InboxMessage,
  conversation: Conversation,
): Promise<{ readonly said: readonly Said[]; readonly record: (store: Store) => Promise<void> } | undefined> => {
  if (!hasLimits(isolation.settings)) return undefined
  const reached = limitReached(await budgetOf(isolation, isolation.store, conversation))
  if (reached === undefined) return undefined
  const { text, details, id } = message
  return {
    said: [{ key: 'reply', role: 'system', text: budgetNotice(reached) }],
    record: (store) =>
      store.usage.pause({ inboxId: id, conversation: conversation.id, text, details, at: isolation.clock() }),
  }
}

/** With the reply, in its transaction: what is told and what is counted are one. A run without a word about it is a turn. */
export const recordUsage = async (
  store: Store,
  run: { readonly id: string; readonly session: Session; readonly usage: AgentUsage | undefined; readonly at: number },
): Promise<void> => {
  const { id, session, usage, at } = run
  await store.usage.add({
    id,
    conversation: session.conversation,
    agent: session.agent,
    costMicros: micros(usage?.costUsd),
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    turns: Math.max(1, usage?.turns ?? 1),
    at,
  })
}

export type Raise = { readonly micros: number; readonly turns: number }

/** Raises the limits and takes up what was paused, all of it or nothing. Answers how many messages go on. */
export const raiseBudget = async (
  { isolation, queue }: Pick<ConversationsContext, 'isolation' | 'queue'>,
  conversation: Conversation,
  raise: Raise,
): Promise<number> => {
  const { store, clock, ids } = isolation
  const now = clock()
  const resumed = await store.transaction(async (inside) => {
    await inside.usage.raise({ id: ids(), conversation: conversation.id, ...raise, at: now })
    const paused = await inside.usage.takePaused(conversation.id)
    const { platform, conversationId } = conversation
    await inside.inbox.accept(
      paused.map(({ inboxId, text, details }) => ({
        id: ids(),
        platform,
        conversationId,
        // Another delivery of the same words: the first one is done.
        deliveryId: `${inboxId}:raised`,
        kind: 'message',
        text,
        details,
        lane: 'turn',
        acceptedAt: now,
      })),
    )
    return paused.length
  })
  if (resumed > 0) queue.spoke()
  return resumed
}

type Reached = {
  readonly of: 'conversation' | 'day'
  readonly spent: string
  readonly limit: string
  readonly more: string
}

const limitReached = ({ conversation, day, limits }: Budget): Reached | undefined => {
  const { conversationMicros, dayMicros, conversationTurns, dayTurns } = limits
  if (isReached(conversation.micros, conversationMicros))
    return money('conversation', conversation.micros, conversationMicros)
  if (isReached(day.micros, dayMicros)) return money('day', day.micros, dayMicros)
  if (isReached(conversation.turns, conversationTurns))
    return turnsReached('conversation', conversation.turns, conversationTurns)
  if (isReached(day.turns, dayTurns)) return turnsReached('day', day.turns, dayTurns)
  return undefined
}

const isReached = (spent: number, limit: number | undefined): limit is number => limit !== undefined && spent >= limit

const money = (of: Reached['of'], spent: number, limit: number): Reached => ({
  of,
  spent: dollars(spent),
  limit: dollars(limit),
  more: String(Math.max(1, Math.ceil((spent - limit) / MICROS) + 1)),
})

const turnsReached = (of: Reached['of'], spent: number, limit: number): Reached => ({
  of,
  spent: turnsText(spent),
  limit: turnsText(limit),
  more: `${Math.max(10, spent - limit + 10)} turns`,
})

const budgetNotice = ({ of, spent, limit, more }: Reached): string =>
  [
    of === 'conversation'
      ? `This conversation has spent ${spent}, and its limit is ${limit}.`
      : `Today ${spent} went into all conversations together, and the limit of a day is ${limit}.`,
    `Your message is kept and was not run. Go on with \`/budget raise ${more}\`, or another amount.`,
  ].join(' ')

const hasLimits = (settings: Settings): boolean =>
  settings.budgetConversationUsd !== undefined ||
  settings.budgetDayUsd !== undefined ||
  settings.budgetConversationTurns !== undefined ||
  settings.budgetDayTurns !== undefined

const MICROS = 1_000_000

const micros = (usd: number | undefined): number | undefined => (usd === undefined ? undefined : toMicros(usd))

export const toMicros = (usd: number): number => Math.round(usd * MICROS)

const sum = (limit: number | undefined, raised: number): number | undefined =>
  limit === undefined ? undefined : limit + raised

/** Where the server's clock says that the day began. */
const dayBegan = (now: number): number => new Date(now).setHours(0, 0, 0, 0)

/** A cent is too coarse for a turn, and a millionth too fine to read. */
export const dollars = (amount: number): string => {
  const usd = amount / MICROS
  return `$${usd > 0 && usd < 1 ? usd.toFixed(3) : usd.toFixed(2)}`
}

export const turnsText = (turns: number): string => counted(turns, 'turn')

export const spentText = (spent: Spent): string => `${dollars(spent.micros)}, ${turnsText(spent.turns)}`
