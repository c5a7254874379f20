import { type Budget, type BudgetReached, budgetOf, MICROS, type Spent } from '../runs/budget.ts'
import { counted } from '../domain/text/words.ts'
import { type Call, type ChatCall, command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'
import { usage } from './grammar/usage.ts'
import { code, facts, type View } from './views/view.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type BudgetResult = {
  readonly budget: Budget
  readonly paused: number
  /** Undefined: no limit raised. */
  readonly resumed: number | undefined
}

const run = async (call: Call): Promise<BudgetResult> => {
  const chat = onlyInChat(call, 'budget')
  const {
    conversation,
    context: { isolation },
  } = chat
  const [word, ...rest] = call.words
  const raise = word === undefined ? undefined : raiseOf(word, rest.join(' '))
  const resumed = raise === undefined ? undefined : await raiseBudget(chat, raise)
  return {
    budget: await budgetOf(isolation, conversation),
    paused: await isolation.store.usage.paused(conversation.id),
    resumed,
  }
}

type Raise = { readonly micros: number; readonly turns: number }

/** Raises the limits and requeues paused messages, all or nothing. Returns the number of messages. */
const raiseBudget = async (
  { context: { isolation }, controls, conversation }: ChatCall,
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
        // A new delivery ID: the original delivery is done.
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
  if (resumed > 0) controls.wake()
  return resumed
}

/** `5`, `$2.50`, `20 turns`. */
const raiseOf = (word: string, amount: string): Raise => {
  const how = remedy`for example, ${coppice('budget raise 5')} for 5 dollars, or ${coppice('budget raise 20 turns')}`
  if (word.toLowerCase() !== 'raise') throw usage(`unexpected argument ${JSON.stringify(word.slice(0, 40))}`, how)
  const turns = /^(\d{1,7}) ?(?:t|turns?)$/i.exec(amount)?.[1]
  if (turns !== undefined && Number(turns) > 0) return { micros: 0, turns: Number(turns) }
  const usd = /^\$?(\d{1,6}(?:\.\d{1,6})?)\$?$/.exec(amount)?.[1]
  if (usd !== undefined && Number(usd) > 0) return { micros: toMicros(Number(usd)), turns: 0 }
  throw usage(amount === '' ? 'missing amount' : `invalid amount ${JSON.stringify(amount.slice(0, 40))}`, how)
}

const toText = ({ budget, paused, resumed }: BudgetResult, view: View): string => {
  const { conversation, day, limits } = budget
  const raised =
    resumed === undefined
      ? []
      : [`Limit raised.${resumed === 0 ? '' : ` Running ${counted(resumed, 'held message')} now.`}`]
  return [
    ...raised,
    facts(
      [
        ['Conversation', `${spentText(conversation)}${limitText(limits.conversationMicros, limits.conversationTurns)}`],
        ['Today', `${spentText(day)}${limitText(limits.dayMicros, limits.dayTurns)}`],
        ...(paused === 0
          ? []
          : [
              [
                'On hold',
                `${counted(paused, 'message')}; continue with ${code('/budget raise <amount>', view)}`,
              ] as const,
            ]),
      ],
      view,
    ),
  ].join('\n')
}

const limitText = (amount: number | undefined, turns: number | undefined): string => {
  const limits = [
    ...(amount === undefined ? [] : [dollars(amount)]),
    ...(turns === undefined ? [] : [turnsText(turns)]),
  ]
  return limits.length === 0 ? ' (no limit)' : ` (limit ${limits.join(', ')})`
}

export const budget = command<BudgetResult>({
  run,
  toText,
  toJson: ({ budget: { conversation, day, limits }, paused, resumed }) => ({
    conversation: { usd: conversation.micros / MICROS, turns: conversation.turns },
    day: { usd: day.micros / MICROS, turns: day.turns },
    limits: {
      conversationUsd: usdOf(limits.conversationMicros),
      dayUsd: usdOf(limits.dayMicros),
      conversationTurns: limits.conversationTurns ?? null,
      dayTurns: limits.dayTurns ?? null,
    },
    paused,
    resumed: resumed ?? null,
  }),
})

const usdOf = (amount: number | undefined): number | null => (amount === undefined ? null : amount / MICROS)

/** The reply at a limit. The message isn't run but kept, so that it blocks nothing. */
export const budgetNotice = ({ of, unit, spent, limit }: BudgetReached): string => {
  const text = unit === 'micros' ? dollars : turnsText
  const more =
    unit === 'micros'
      ? String(Math.max(1, Math.ceil((spent - limit) / MICROS) + 1))
      : `${Math.max(10, spent - limit + 10)} turns`
  return [
    of === 'conversation'
      ? `This conversation has spent ${text(spent)}; its limit is ${text(limit)}.`
      : `All conversations together have spent ${text(spent)} today; the daily limit is ${text(limit)}.`,
    `Your message is on hold. To run it, use \`/budget raise ${more}\` (or another amount).`,
  ].join(' ')
}

const toMicros = (usd: number): number => Math.round(usd * MICROS)

/** Cents are too coarse for a turn, millionths too fine to read. */
const dollars = (amount: number): string => {
  const usd = amount / MICROS
  return `$${usd > 0 && usd < 1 ? usd.toFixed(3) : usd.toFixed(2)}`
}

const turnsText = (turns: number): string => counted(turns, 'turn')

export const spentText = (spent: Spent): string => `${dollars(spent.micros)}, ${turnsText(spent.turns)}`
