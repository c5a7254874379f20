/*
 * Imports items from a source, and updates the texts of those imported before. In: what the source has. Out: what was
 * added and updated, and what was left alone and why. One transaction; importing again adds nothing.
 */
import type { Codebase } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { inOrder } from '../../../domain/fleet/import/order.ts'
import { phaseOf } from '../../../domain/fleet/import/sync-states.ts'
import {
  type Merged,
  mergeFromSource,
  type Resolved,
  snapshotOf,
  type WantedItem,
} from '../../../domain/fleet/import/wanted.ts'
import { type Item, type ItemField, type SourceKind, sourceKey, sourceLabel } from '../../../domain/fleet/item.ts'
import type { ImportedItem } from '../../../store/fleet/store.ts'
import type { Store } from '../../../store/store.ts'

export type ImportRequest = {
  readonly codebase: Pick<Codebase, 'id'>
  readonly kind: SourceKind
  /** Each source once, with all dependencies among them. */
  readonly wanted: readonly WantedItem[]
  readonly by: string
  readonly at: number
  /** Change nothing; new items have the ids that they would get. */
  readonly dryRun: boolean
}

export type ImportedItems = {
  readonly added: readonly Item[]
  readonly updated: readonly { readonly item: Item; readonly fields: readonly ItemField[] }[]
  /** Imported before, and up to date. */
  readonly unchanged: readonly Item[]
  /** Changed in the source but not here: somebody edited the item here, or work has begun. */
  readonly kept: readonly {
    readonly item: Item
    readonly fields: readonly ItemField[]
    readonly why: 'edited' | 'begun'
  }[]
}

export const importItems = (store: Store, request: ImportRequest): Promise<ImportedItems> =>
  store.transaction(async (inside) => {
    const { codebase, kind, dryRun } = request
    // Also locks out concurrent additions.
    const waits = await inside.items.lockDependencies()
    const known = new Map<string, Item>()
    for (const item of await inside.items.fromSource(codebase.id, kind)) {
      if (item.source !== undefined) known.set(sourceKey(item.source), item)
    }
    const fresh = dependenciesFirst(request.wanted.filter(({ source }) => !known.has(sourceKey(source))))
    const first = await inside.items.takeIds(dryRun ? 0 : fresh.length)
    const ids = new Map([...known].map(([key, { id }]) => [key, id]))
    for (const [n, { source }] of fresh.entries()) ids.set(sourceKey(source), first + n)
    const added = fresh.map((one, n) => newItem(resolve(one, ids), first + n, request))
    const changes = request.wanted.flatMap((one): Change[] => {
      const item = known.get(sourceKey(one.source))
      return item === undefined ? [] : [{ item, merged: mergeFromSource(item, resolve(one, ids)) }]
    })
    assertNoCircle(waits, [...added, ...changes.map(({ item, merged }) => ({ ...item, ...merged.patch }))])
    if (!dryRun) {
      await inside.items.insertImported(added)
      for (const change of changes) await apply(inside, change, request)
    }
    return { added: added.map(asItem), ...reportOf(changes) }
  })

type Change = { readonly item: Item; readonly merged: Merged }

/** Dependencies first, so that they get smaller ids. */
const dependenciesFirst = (wanted: readonly WantedItem[]): readonly WantedItem[] => {
  const byKey = new Map(wanted.map((one) => [sourceKey(one.source), one]))
  const ordered = inOrder(new Map([...byKey].map(([key, { after }]) => [key, after])))
  if ('circle' in ordered) {
    throw circular(ordered.circle.map((key) => sourceLabel(byKey.get(key)?.source ?? { kind: 'beads', id: key })))
  }
  return ordered.order.flatMap((key) => byKey.get(key) ?? [])
}

const resolve = (wanted: WantedItem, ids: ReadonlyMap<string, number>): Resolved => {
  const after = wanted.after.map((key) => {
    const id = ids.get(key)
    // Without this dependency, the item would start too early.
    if (id === undefined)
      throw new AppError('unexpected', `${key}, which ${sourceKey(wanted.source)} waits for, is unknown`)
    return id
  })
  return { ...wanted, after: [...new Set(after)].toSorted((a, b) => a - b) }
}

const newItem = (wanted: Resolved, id: number, { codebase, by, at }: ImportRequest): ImportedItem => {
  const { title, body, priority, after, parked, there } = wanted
  const here = phaseOf(parked === undefined ? 'open' : 'parked')
  const seen = { ...snapshotOf(wanted), ...(there !== undefined && { phases: { there, here } }) }
  const source = { ...wanted.source, seen }
  return { id, codebaseId: codebase.id, title, body, priority, after, parked, source, createdBy: by, createdAt: at }
}

const asItem = (item: ImportedItem): Item => ({
  ...item,
  state: item.parked === undefined ? 'open' : 'parked',
  environmentId: undefined,
  pullRequest: undefined,
  updatedAt: item.createdAt,
})

const apply = async (
  store: Store,
  { item, merged: { patch, seen } }: Change,
  { by, at, kind }: ImportRequest,
): Promise<void> => {
  await store.items.edit(item.id, patch, { by, at, from: kind })
  if (seen !== undefined && item.source !== undefined) {
    await store.items.update(item.id, { source: { ...item.source, seen } })
  }
}

const reportOf = (changes: readonly Change[]): Omit<ImportedItems, 'added'> => ({
  updated: changes.flatMap(({ item, merged: { patch } }) => {
    const fields = Object.keys(patch) as ItemField[]
    return fields.length === 0 ? [] : [{ item: { ...item, ...patch }, fields }]
  }),
  unchanged: changes.flatMap(({ item, merged: { patch, edited, begun } }) =>
    Object.keys(patch).length + edited.length + begun.length === 0 ? [item] : [],
  ),
  kept: changes.flatMap(({ item, merged: { edited, begun } }) => [
    ...(edited.length === 0 ? [] : [{ item, fields: edited, why: 'edited' as const }]),
    ...(begun.length === 0 ? [] : [{ item, fields: begun, why: 'begun' as const }]),
  ]),
})

/** Checks all items, since people can add items and edit dependencies here. */
const assertNoCircle = (
  waits: ReadonlyMap<number, readonly number[]>,
  changed: readonly Pick<Item, 'id' | 'after' | 'source'>[],
): void => {
  const graph = new Map(waits)
  for (const { id, after } of changed) graph.set(id, after)
  const ordered = inOrder(
    graph,
    changed.map(({ id }) => id),
  )
  if (!('circle' in ordered)) return
  const names = new Map(changed.map(({ id, source }) => [id, source]))
  throw circular(
    ordered.circle.map((id) => {
      const source = names.get(id)
      return source === undefined ? `item ${id}` : sourceLabel(source)
    }),
  )
}

const MOST_NAMES = 20

const circular = (circle: readonly string[]): AppError => {
  const names = circle.length > MOST_NAMES ? [...circle.slice(0, MOST_NAMES), '…'] : circle
  return new AppError('unusable-file', `these wait for each other in a circle: ${[...names, circle[0]].join(' → ')}`, {
    remedy: 'remove one of these dependencies, then import again; nothing was imported',
  })
}
