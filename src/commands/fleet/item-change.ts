import type { Item } from '../../domain/fleet/item.ts'
import { editItem } from '../../fleet/items/add.ts'
import { type Closed, closeItem, parkByHand, reopenItem } from '../../fleet/items/close.ts'
import { type ItemDetails, itemDetails } from '../../fleet/items/details.ts'
import { type Call, command, listOf, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { itemJson } from '../views/items.ts'
import { describeReasons, reasonJson } from '../views/reasons.ts'
import { code, printable, type View } from '../views/view.ts'
import { afterOf, changerOf, itemOf, priorityOf } from './scope.ts'

const detailsOf = async (call: Call, item: Item): Promise<ItemDetails> => {
  const { context: isolation } = await call.open()
  const [seen] = await itemDetails({ isolation }, [item])
  return seen ?? { item, codebase: '', ready: false, agent: undefined, environment: undefined }
}

const said =
  (done: string) =>
  ({ item }: ItemDetails, view: View): string =>
    `${view.paint('green', done)} item ${item.id}: ${printable(item.title)}`

const edit = async (call: Call): Promise<ItemDetails> => {
  const { values } = call
  const change = {
    title: textOf(values, 'title'),
    body: textOf(values, 'body'),
    priority: priorityOf(call),
    after: listOf(values, 'after').length === 0 ? undefined : afterOf(call),
  }
  if (Object.values(change).every((one) => one === undefined)) {
    throw usage('nothing to change', 'usage: --title, --body, --priority or --after')
  }
  const workplace = await call.open()
  const { id } = await itemOf(call, workplace)
  const isolation = workplace.context
  return detailsOf(call, await editItem({ isolation }, id, change, changerOf(call, { isolation })))
}

export const itemEdit = command<ItemDetails>({ run: edit, toText: said('Changed'), toJson: itemJson })

const park = async (call: Call): Promise<ItemDetails> => {
  const workplace = await call.open()
  const { id } = await itemOf(call, workplace)
  const fleet = await workplace.fleet()
  const note = call.words.slice(1).join(' ').trim()
  return detailsOf(
    call,
    await parkByHand(fleet, id, { note: note === '' ? undefined : note, by: changerOf(call, fleet) }),
  )
}

export const itemPark = command<ItemDetails>({ run: park, toText: said('Parked'), toJson: itemJson })

const reopen = async (call: Call): Promise<ItemDetails> => {
  const workplace = await call.open()
  const { id } = await itemOf(call, workplace)
  const fleet = await workplace.fleet()
  return detailsOf(call, await reopenItem(fleet, id, changerOf(call, fleet)))
}

export const itemReopen = command<ItemDetails>({ run: reopen, toText: said('Reopened'), toJson: itemJson })

type ClosedItem = Closed & { readonly seen: ItemDetails }

const close = async (call: Call): Promise<ClosedItem> => {
  const workplace = await call.open()
  const { id } = await itemOf(call, workplace)
  const fleet = await workplace.fleet()
  const closed = await closeItem(fleet, id, changerOf(call, fleet))
  return { ...closed, seen: await detailsOf(call, closed.item) }
}

const closedText = ({ seen, worktree }: ClosedItem, view: View): string => {
  const headline = said('Closed')(seen, view)
  if (worktree === undefined) return headline
  const { environment, kept } = worktree
  const branch = code(environment.branch, view)
  return kept.length === 0
    ? `${headline}\n  removed worktree ${branch}`
    : `${headline}\n  kept worktree ${branch}: ${printable(describeReasons(kept))}`
}

export const itemClose = command<ClosedItem>({
  run: close,
  toText: closedText,
  toJson: ({ seen, worktree }) => ({
    ...itemJson(seen),
    worktree:
      worktree === undefined ? null : { removed: worktree.kept.length === 0, reasons: worktree.kept.map(reasonJson) },
  }),
})
