import { isSettled, type ItemState, itemStates } from '../../domain/fleet/item.ts'
import { type ItemDetails, itemDetails } from '../../fleet/items/details.ts'
import { type Call, command, isSet, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { itemJson, stateCell } from '../views/items.ts'
import { type Cell, fittedTable, lastCommand, type View } from '../views/view.ts'
import { scopeOf } from './scope.ts'

type Listed = { readonly items: readonly ItemDetails[]; readonly hidden: number }

const list = async (call: Call): Promise<Listed> => {
  const state = stateOf(call)
  const workplace = await call.open()
  const codebase = await scopeOf(call, workplace)
  const { context: isolation } = workplace
  const found = await isolation.store.items.list({
    ...(codebase !== undefined && { codebaseId: codebase.id }),
    ...(state !== undefined && { states: [state] }),
  })
  const shown = isSet(call.values, 'all') || state !== undefined ? found : found.filter((one) => !isSettled(one.state))
  return { items: await itemDetails({ isolation }, shown), hidden: found.length - shown.length }
}

const ready = async (call: Call): Promise<Listed> => {
  const workplace = await call.open()
  const codebase = await scopeOf(call, workplace)
  const { context: isolation } = workplace
  const found = await isolation.store.items.ready(codebase === undefined ? {} : { codebaseIds: [codebase.id] })
  return { items: await itemDetails({ isolation }, found), hidden: 0 }
}

const stateOf = ({ values }: Call): ItemState | undefined => {
  const given = textOf(values, 'state')?.replaceAll(/[ -]/g, '_')
  const state = itemStates.find((one) => one === given)
  if (given === undefined || state !== undefined) return state
  throw usage(`unknown state ${JSON.stringify(given)}`, `usage: --state <${itemStates.join(', ')}>`)
}

const toText =
  (nothing: string) =>
  ({ items, hidden }: Listed, view: View): string => {
    const more =
      hidden === 0
        ? ''
        : `${hidden} landed or closed. Show them: ${lastCommand(view.commandText('item list --all'), view)}`
    if (items.length === 0) {
      const add = `Add one: ${lastCommand(view.commandText('item add <title>'), view)}`
      return [nothing, more === '' ? add : more].join('\n')
    }
    const repositories = new Set(items.map(({ codebase }) => codebase))
    const { text } = fittedTable(
      ['ITEM', 'P', 'STATE', 'TITLE', 'AGENT', 'BRANCH', 'REPOSITORY'],
      items.map((seen) => row(seen, repositories.size > 1)),
      view,
      { drop: ['BRANCH', 'REPOSITORY'], cut: ['TITLE'] },
    )
    return more === '' ? text : `${text}\n${more}`
  }

const row = ({ item, codebase, ready: isReady, agent, environment }: ItemDetails, named: boolean): readonly Cell[] => [
  { text: String(item.id), style: 'bold' },
  { text: String(item.priority) },
  item.state === 'open' && !isReady ? { text: `after ${item.after.join(', ')}`, style: 'dim' } : stateCell(item),
  { text: item.title },
  { text: agent?.name ?? '' },
  { text: environment?.branch ?? '', style: 'dim' },
  { text: named ? codebase : '', style: 'dim' },
]

const toJson = ({ items }: Listed): unknown => items.map(itemJson)

export const itemList = command<Listed>({ run: list, toText: toText('No items in the queue.'), toJson })
export const itemReady = command<Listed>({ run: ready, toText: toText('No items are ready.'), toJson })
