/*
 * Adds and edits items. In: a title, or a change. Out: the item, validated and recorded with its history. `change.ts`
 * has the moves that an agent causes, `close.ts` those that a person makes.
 */
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type Item, type Priority, toBody, toTitle } from '../../domain/fleet/item.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'

export type ItemRequest = {
  readonly codebase: Pick<Codebase, 'id'>
  readonly title: string
  readonly body: string
  readonly priority: Priority
  /** The items that must be landed or closed before it starts. */
  readonly after: readonly number[]
  readonly by: string
  /** The conversation to follow the item. */
  readonly conversation?: string | undefined
}

type Context = { readonly isolation: Pick<FleetContext['isolation'], 'store' | 'clock'> }

export const addItem = async ({ isolation: { store, clock } }: Context, request: ItemRequest): Promise<Item> => {
  const { codebase, priority, by, conversation } = request
  const [title, body] = [toTitle(request.title), toBody(request.body)]
  const createdAt = clock()
  return store.transaction(async (inside) => {
    const after = await existing(inside, request.after)
    const item = { codebaseId: codebase.id, title, body, priority, after, source: undefined, createdBy: by, createdAt }
    const added = await inside.items.insert(item)
    // Only an imported item can exist already.
    if (added === undefined) throw new AppError('unexpected', 'the item was not added')
    if (conversation !== undefined) await inside.items.follow(added.id, conversation, createdAt)
    return added
  })
}

/** Throws for an unknown item. */
const existing = async (store: Store, ids: readonly number[]): Promise<readonly number[]> => {
  for (const id of ids) await itemNumbered(store, id)
  return [...new Set(ids)].toSorted((a, b) => a - b)
}

export const itemNumbered = async (store: Pick<Store, 'items'>, id: number): Promise<Item> => {
  const item = await store.items.get(id)
  if (item !== undefined) return item
  throw new AppError('not-found', `unknown item ${id}`, { remedy: remedy`run ${coppice('item list')} for a list` })
}

export type ItemEdit = {
  readonly title?: string | undefined
  readonly body?: string | undefined
  readonly priority?: Priority | undefined
  readonly after?: readonly number[] | undefined
}

/** The item's agent sees the change at its next `coppice prime`. */
export const editItem = ({ isolation: { store, clock } }: Context, id: number, edit: ItemEdit, by: string) =>
  store.transaction(async (inside): Promise<Item> => {
    // Locked, or two concurrent edits could make two items depend on each other.
    const waits = edit.after === undefined ? undefined : await inside.items.lockDependencies()
    const item = await itemNumbered(inside, id)
    const after = edit.after && (await existing(inside, edit.after))
    if (after !== undefined && waits !== undefined) assertNoCircle(id, after, waits)
    const title = edit.title === undefined ? undefined : toTitle(edit.title)
    const body = edit.body === undefined ? undefined : toBody(edit.body)
    const patch = {
      ...(title !== undefined && title !== item.title && { title }),
      ...(body !== undefined && body !== item.body && { body }),
      ...(edit.priority !== undefined && edit.priority !== item.priority && { priority: edit.priority }),
      ...(after !== undefined && after.join() !== item.after.join() && { after }),
    }
    await inside.items.edit(id, patch, { by, at: clock() })
    return itemNumbered(inside, id)
  })

const assertNoCircle = (id: number, after: readonly number[], waits: ReadonlyMap<number, readonly number[]>): void => {
  const seen = new Set<number>()
  const open = [...after]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === id) throw new AppError('usage', `item ${id} would wait for itself`)
    if (seen.has(next)) continue
    seen.add(next)
    open.push(...(waits.get(next) ?? []))
  }
}
