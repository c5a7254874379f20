import type { AgentUsage } from '../agents/agent.ts'
import type { Settings } from '../domain/config/settings.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Store } from '../store/store.ts'

/** Money in millionths of a dollar, as far as agents report it, and turns (at least one per run). */
export type Spent = { readonly micros: number; readonly turns: number }

export type Budget = {
  readonly conversation: Spent
  readonly day: Spent
  /** Undefined: none. Includes raises. */
  readonly limits: {
    readonly conversationMicros: number | undefined
    readonly dayMicros: number | undefined
    readonly conversationTurns: number | undefined
    readonly dayTurns: number | undefined
  }
}

type Parts = Pick<IsolationContext, 'settings' | 'clock' | 'store'>

export const budgetOf = async ({ settings, clock, store }: Parts, holder: { readonly id: string }): Promise<Budget> => {
  const since = dayBegan(clock())
  const [here, today, raisedHere, raisedToday] = [
    await store.usage.spent({ conversation: holder.id }),
    await store.usage.spent({ since }),
    await store.usage.raised({ conversation: holder.id }),
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

/** A limit that was reached, in millionths of a dollar or in turns. */
export type BudgetReached = {
  readonly of: 'conversation' | 'day'
  readonly unit: 'micros' | 'turns'
  readonly spent: number
  readonly limit: number
}

/** Checked before each run. Never interrupts one: half a turn costs as much as a whole one and yields less. */
export const budgetReached = async (
  context: Parts,
  holder: { readonly id: string },
): Promise<BudgetReached | undefined> => {
  if (!hasLimits(context.settings)) return undefined
  const { conversation, day, limits } = await budgetOf(context, holder)
  const candidates: readonly (Omit<BudgetReached, 'limit'> & { readonly limit: number | undefined })[] = [
    { of: 'conversation', unit: 'micros', spent: conversation.micros, limit: limits.conversationMicros },
    { of: 'day', unit: 'micros', spent: day.micros, limit: limits.dayMicros },
    { of: 'conversation', unit: 'turns', spent: conversation.turns, limit: limits.conversationTurns },
    { of: 'day', unit: 'turns', spent: day.turns, limit: limits.dayTurns },
  ]
  for (const { limit, ...one } of candidates) if (limit !== undefined && one.spent >= limit) return { ...one, limit }
  return undefined
}

/** Recorded in the same transaction as the reply. A run without usage data counts as one turn. */
export const recordUsage = async (
  store: Store,
  run: {
    readonly id: string
    readonly holder: string
    readonly agent: string
    readonly usage: AgentUsage | undefined
    readonly at: number
  },
): Promise<void> => {
  const { id, holder, agent, usage, at } = run
  await store.usage.add({
    id,
    conversation: holder,
    agent,
    costMicros: micros(usage?.costUsd),
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    turns: Math.max(1, usage?.turns ?? 1),
    at,
  })
}

const hasLimits = (settings: Settings): boolean =>
  settings.budgetConversationUsd !== undefined ||
  settings.budgetDayUsd !== undefined ||
  settings.budgetConversationTurns !== undefined ||
  settings.budgetDayTurns !== undefined

export const MICROS = 1_000_000

const micros = (usd: number | undefined): number | undefined =>
  usd === undefined ? undefined : Math.round(usd * MICROS)

const sum = (limit: number | undefined, raised: number): number | undefined =>
  limit === undefined ? undefined : limit + raised

/** Midnight by the server's clock. */
const dayBegan = (now: number): number => new Date(now).setHours(0, 0, 0, 0)
