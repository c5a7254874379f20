import { type BudgetReached, MICROS, type Spent } from '../runs/budget.ts'
import type { Conversation } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'

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

/** At a limit the message is not run. It is answered with this and kept, so that it blocks nothing. */
export const budgetNotice = ({ of, unit, spent, limit }: BudgetReached): string => {
  const text = unit === 'micros' ? dollars : turnsText
  const more =
    unit === 'micros'
      ? String(Math.max(1, Math.ceil((spent - limit) / MICROS) + 1))
      : `${Math.max(10, spent - limit + 10)} turns`
  return [
    of === 'conversation'
      ? `This conversation has spent ${text(spent)}, and its limit is ${text(limit)}.`
      : `Today ${text(spent)} went into all conversations together, and the limit of a day is ${text(limit)}.`,
    `Your message is kept and was not run. Go on with \`/budget raise ${more}\`, or another amount.`,
  ].join(' ')
}

export const toMicros = (usd: number): number => Math.round(usd * MICROS)

/** A cent is too coarse for a turn, and a millionth too fine to read. */
export const dollars = (amount: number): string => {
  const usd = amount / MICROS
  return `$${usd > 0 && usd < 1 ? usd.toFixed(3) : usd.toFixed(2)}`
}

export const turnsText = (turns: number): string => `${turns} ${turns === 1 ? 'turn' : 'turns'}`

export const spentText = (spent: Spent): string => `${dollars(spent.micros)}, ${turnsText(spent.turns)}`
