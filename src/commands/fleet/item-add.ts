import { defaultPriority } from '../../domain/fleet/item.ts'
import { addItem } from '../../fleet/items/add.ts'
import { type ItemDetails, itemDetails } from '../../fleet/items/details.ts'
import { type Call, command, textOf } from '../command.ts'
import { resolveTarget } from '../target.ts'
import { itemJson } from '../views/items.ts'
import { block, printable, type View } from '../views/view.ts'
import { afterOf, changerOf, priorityOf } from './scope.ts'

const run = async (call: Call): Promise<ItemDetails> => {
  const priority = priorityOf(call) ?? defaultPriority
  const after = afterOf(call)
  const { codebase, context: isolation } = await resolveTarget(call)
  const item = await addItem(
    { isolation },
    {
      codebase,
      title: call.words.join(' '),
      body: textOf(call.values, 'body') ?? '',
      priority,
      after,
      by: changerOf(call, { isolation }),
      conversation: call.chat?.conversation.id,
    },
  )
  const [seen] = await itemDetails({ isolation }, [item])
  return seen ?? { item, codebase: codebase.name, ready: false, agent: undefined, environment: undefined }
}

const toText = ({ item: { id: itemId, title, after }, ready }: ItemDetails, view: View): string => {
  const added = `${view.paint('green', 'Added')} item ${view.paint('bold', String(itemId))}: ${printable(title)}`
  if (!ready) return `${added}\n  it can start after ${after.map((one) => `item ${one}`).join(', ')}`
  const next = block(view.commandText(`sling ${itemId}`), view)
  return `${added}\n${view.chat === true ? next : `  ${next}`}`
}

export const itemAdd = command<ItemDetails>({ run, toText, toJson: itemJson })
