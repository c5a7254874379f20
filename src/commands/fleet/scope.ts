import { AppError } from '../../domain/errors.ts'
import type { Item, Priority } from '../../domain/fleet/item.ts'
import { toPriority } from '../../domain/fleet/item.ts'
import type { Codebase } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { callerIn } from '../../fleet/caller.ts'
import type { FleetContext } from '../../fleet/context.ts'
import { unknownAgent } from '../../fleet/peek-and-nudge.ts'
import { itemNumbered } from '../../fleet/items/add.ts'
import { type Call, listOf, textOf, type Workplace } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { boundCodebase, findTargetCodebase } from '../target.ts'

/** Who changes something, for an item's history: a conversation, an agent in its session, or a person at a terminal. */
export const changerOf = ({ chat }: Pick<Call, 'chat'>, { isolation }: Pick<FleetContext, 'isolation'>): string => {
  if (chat !== undefined) return `${chat.conversation.platform}:${chat.conversation.conversationId}`
  const { agent, spawn } = callerIn(isolation.ownEnvironment)
  // Outside a session, COPPICE_AGENT is a setting.
  return agent === undefined || spawn === undefined ? 'cli' : `agent:${agent}`
}

/** The repository whose items a list shows; undefined: all. In a repository's thread it is never all. */
export const scopeOf = async (call: Call, workplace: Workplace): Promise<Codebase | undefined> => {
  if (call.chat?.reach === 'server') return undefined
  const codebase = await findTargetCodebase(call, workplace)
  if (codebase !== undefined || call.chat === undefined) return codebase
  throw new AppError('not-found', 'this conversation has no repository yet', {
    remedy: remedy`choose one with ${coppice('codebase <name>')}`,
  })
}

/** The item that a command names. A repository's thread doesn't know the items of others. */
export const itemOf = async (call: Call, workplace: Workplace, word = call.words[0]): Promise<Item> => {
  const item = await itemNumbered(workplace.context.store, itemNumber(word))
  if (await isVisible(call, workplace, item)) return item
  throw new AppError('not-found', `unknown item ${item.id}`)
}

/** The agent that a command names, or was told of under this name. */
export const assertVisibleAgent = async (call: Call, workplace: Workplace, name: string): Promise<void> => {
  if (call.chat === undefined || call.chat.reach === 'server') return
  const { store, host } = workplace.context
  const agent = await store.fleetAgents.byName(host, name)
  if (agent === undefined || !(await isVisible(call, workplace, agent))) throw unknownAgent(name)
}

const isVisible = async (
  { chat }: Call,
  workplace: Workplace,
  { codebaseId }: Pick<Item | FleetAgent, 'codebaseId'>,
): Promise<boolean> =>
  chat === undefined || chat.reach === 'server' || (await boundCodebase(workplace, chat))?.id === codebaseId

/** `7`, `#7` or `item-7`. */
const itemNumber = (word: string | undefined): number => {
  const digits = /^(?:#|item-)?(\d{1,9})$/.exec(word ?? '')?.[1]
  if (digits !== undefined) return Number(digits)
  throw usage(`${JSON.stringify(word ?? '')} isn't an item number`, 'usage: a number such as 7')
}

export const priorityOf = ({ values }: Pick<Call, 'values'>): Priority | undefined => {
  const given = textOf(values, 'priority')
  if (given === undefined) return undefined
  const priority = /^[0-4]$/.test(given) ? toPriority(Number(given)) : undefined
  if (priority !== undefined) return priority
  throw usage(`invalid --priority ${JSON.stringify(given)}`, 'usage: --priority <0 to 4>, 0 for the most urgent')
}

export const afterOf = ({ values }: Pick<Call, 'values'>): readonly number[] =>
  listOf(values, 'after')
    .flatMap((text) => text.split(','))
    .map((word) => itemNumber(word.trim()))
