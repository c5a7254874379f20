import { type Budget, budgetOf } from '../../runs/budget.ts'
import { dollars, raiseBudget, spentText, toMicros, turnsText } from '../budget.ts'
import { type Call, command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'
import { usage } from './usage.ts'
import { code, facts, type View } from './view.ts'

export type BudgetResult = {
  readonly budget: Budget
  readonly paused: number
  /** Undefined: nothing was raised. */
  readonly resumed: number | undefined
}

const run = async (call: Call): Promise<BudgetResult> => {
  const { conversation, context } = onlyInChat(call, 'budget')
  const { isolation } = context
  const [word, ...rest] = call.words
  const raise = word === undefined ? undefined : raiseOf(word, rest.join(' '))
  const resumed = raise === undefined ? undefined : await raiseBudget(context, conversation, raise)
  return {
    budget: await budgetOf(isolation, conversation),
    paused: await isolation.store.usage.paused(conversation.id),
    resumed,
  }
}

/** `5`, `$2.50`, `20 turns`. */
const raiseOf = (word: string, amount: string): { micros: number; turns: number } => {
  const how = 'say how much: `/budget raise 5` for five dollars, `/budget raise 20 turns` for twenty turns'
  if (word.toLowerCase() !== 'raise') throw usage(`/budget does not know ${JSON.stringify(word.slice(0, 40))}`, how)
  const turns = /^(\d{1,7}) ?(?:t|turns?)$/i.exec(amount)?.[1]
  if (turns !== undefined && Number(turns) > 0) return { micros: 0, turns: Number(turns) }
  const usd = /^\$?(\d{1,6}(?:\.\d{1,6})?)\$?$/.exec(amount)?.[1]
  if (usd !== undefined && Number(usd) > 0) return { micros: toMicros(Number(usd)), turns: 0 }
  throw usage(amount === '' ? 'how much more?' : `${JSON.stringify(amount.slice(0, 40))} is no amount`, how)
}

const toText = ({ budget, paused, resumed }: BudgetResult, view: View): string => {
  const { conversation, day, limits } = budget
  const raised =
    resumed === undefined
      ? []
      : [
          `Raised.${resumed === 0 ? '' : ` ${resumed === 1 ? 'The message that was kept goes' : `${resumed} messages that were kept go`} on now.`}`,
        ]
  return [
    ...raised,
    facts(
      [
        ['Here', `${spentText(conversation)}${limitText(limits.conversationMicros, limits.conversationTurns)}`],
        ['Today', `${spentText(day)}${limitText(limits.dayMicros, limits.dayTurns)}`],
        ...(paused === 0 ? [] : [['Kept', `${paused}: ${code('/budget raise <amount>', view)}`] as const]),
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
    conversation: { usd: conversation.micros / 1_000_000, turns: conversation.turns },
    day: { usd: day.micros / 1_000_000, turns: day.turns },
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

const usdOf = (amount: number | undefined): number | null => (amount === undefined ? null : amount / 1_000_000)
