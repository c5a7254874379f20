/*
 * Items in the database. In: items and state transitions. Out: items. Each change is added to the item's history.
 */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import {
  assertItemTransition,
  type Item,
  type ItemChange,
  type ItemField,
  itemStates,
  settledStates,
  sourceKey,
} from '../../domain/fleet/item.ts'
import type { EnvironmentId } from '../../domain/names.ts'
import { lockCodebase } from '../codebases.ts'
import { type Engine, inTransaction } from '../engine.ts'
import { fromJson, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import type { ItemRow } from './tables.ts'
import { columnsOf, toRow, withDependencies } from './item-rows.ts'
import { lockNumbers, reserveNumber, takeNumber } from './counters.ts'
import { insertImported } from './imported.ts'
import type { ItemCounts, ItemStore, NewItem, RecoveredItem, Signed } from './store.ts'

export const itemStore = (db: Kysely<Tables>, engine: Engine): ItemStore => {
  return {
    insert: (item) =>
      inTransaction(db, async (inside) => {
        // Locked before the lookup, against concurrent imports and the removal of the codebase.
        await lockCodebase(inside, engine, item.codebaseId)
        if (item.source !== undefined && (await bySource(inside, item)) !== undefined) return undefined
        const id = await takeNumber(inside, 'items')
        const made: Item = {
          ...item,
          id,
          state: 'open',
          environmentId: undefined,
          parked: undefined,
          pullRequest: undefined,
          updatedAt: item.createdAt,
        }
        await insert(inside, made, { kind: 'created' })
        return made
      }),
    recover: (item: RecoveredItem) =>
      inTransaction(db, async (inside) => {
        await lockCodebase(inside, engine, item.codebaseId)
        await reserveNumber(inside, 'items', item.id)
        if ((await itemsOf(inside, (query) => query.where('id', '=', item.id))).length > 0) return false
        // Some of its dependencies may not have been recovered.
        const known = await itemsOf(inside, (query) => query.where('id', 'in', [-1, ...item.after]))
        const after = known.map(({ id }) => id)
        // It may have been imported again before this.
        const source = (await bySource(inside, item)) === undefined ? item.source : undefined
        const made = { ...item, source, after, parked: undefined, updatedAt: item.createdAt }
        await insert(inside, made, { kind: 'recovered' })
        return true
      }),
    get: async (id) => (await itemsOf(db, (query) => query.where('id', '=', id)))[0],
    some: (ids) =>
      ids.length === 0 ? Promise.resolve([]) : itemsOf(db, (query) => query.where('id', 'in', ids).orderBy('id')),
    bySource: async (codebaseId, key) =>
      (await itemsOf(db, (query) => query.where('codebase_id', '=', codebaseId).where('source_key', '=', key)))[0],
    fromSource: (codebaseId, kind) =>
      itemsOf(db, (query) =>
        query.where('codebase_id', '=', codebaseId).where('source_key', 'like', `${kind}:%`).orderBy('id'),
      ),
    takeIds: (count) => takeNumber(db, 'items', count),
    insertImported: (items) => inTransaction(db, (inside) => insertImported(inside, items)),
    list: ({ codebaseId, states }) =>
      itemsOf(db, (query) => {
        const some = codebaseId === undefined ? query : query.where('codebase_id', '=', codebaseId)
        return (states === undefined ? some : some.where('state', 'in', states)).orderBy('id')
      }),
    ready: async ({ codebaseIds, limit }) => {
      if (codebaseIds?.length === 0) return []
      return itemsOf(db, (query) => {
        const open = query.where('state', '=', 'open').where(isReady())
        const some = codebaseIds === undefined ? open : open.where('codebase_id', 'in', codebaseIds)
        const sorted = some.orderBy('priority').orderBy('created_at').orderBy('id')
        return limit === undefined ? sorted : sorted.limit(limit)
      })
    },
    ofEnvironments: async (ids: readonly EnvironmentId[]) =>
      ids.length === 0 ? [] : itemsOf(db, (query) => query.where('environment_id', 'in', ids).orderBy('id')),
    move: (id, { from, to, change, patch = {}, by, at }) => {
      assertItemTransition(from, to)
      return inTransaction(db, async (inside) => {
        const result = await inside
          .updateTable('items')
          .set({ ...columnsOf(patch), ...(to !== 'parked' && { parked: null }), state: to, updated_at: at })
          .where('id', '=', id)
          .where('state', '=', from)
          .executeTakeFirst()
        if (result.numUpdatedRows !== 1n) return false
        await note(inside, id, change, { by, at })
        return true
      })
    },
    lockDependencies: async () => {
      await lockNumbers(db, 'items')
      const rows = await db.selectFrom('item_dependencies').selectAll().orderBy('after_id').execute()
      const found = Map.groupBy(rows, ({ item_id }) => item_id)
      return new Map([...found].map(([id, needs]) => [id, needs.map(({ after_id }) => after_id)]))
    },
    edit: (id, { after, ...patch }, { from, ...signed }) =>
      inTransaction(db, async (inside) => {
        const fields = [...Object.keys(patch), ...(after === undefined ? [] : ['after'])] as readonly ItemField[]
        if (fields.length === 0) return
        await inside
          .updateTable('items')
          .set({ ...patch, updated_at: signed.at })
          .where('id', '=', id)
          .execute()
        if (after !== undefined) {
          await inside.deleteFrom('item_dependencies').where('item_id', '=', id).execute()
          await insertDependencies(inside, id, after)
        }
        await note(inside, id, { kind: 'edited', fields, ...(from !== undefined && { from }) }, signed)
      }),
    update: async (id, patch) => {
      const set = columnsOf(patch)
      if (Object.keys(set).length > 0) await db.updateTable('items').set(set).where('id', '=', id).execute()
    },
    detachEnvironment: async (id) => {
      await db.updateTable('items').set({ environment_id: null }).where('environment_id', '=', id).execute()
    },
    note: (id, change, signed) => note(db, id, change, signed),
    history: async (id) => {
      const rows = await db.selectFrom('item_history').selectAll().where('item_id', '=', id).orderBy('seq').execute()
      return rows.map(({ at, by, change }) => ({ at, by, change: fromJson(change) as ItemChange }))
    },
    counts: async (codebaseId) => {
      const scoped = () => {
        const some = db.selectFrom('items')
        return codebaseId === undefined ? some : some.where('codebase_id', '=', codebaseId)
      }
      const rows = await scoped()
        .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
        .groupBy('state')
        .execute()
      const { ready } = await scoped()
        .select((eb) => eb.fn.countAll<number>().as('ready'))
        .where('state', '=', 'open')
        .where(isReady())
        .executeTakeFirstOrThrow()
      const found = new Map(rows.map(({ state, count }) => [state, count]))
      const counts = Object.fromEntries(itemStates.map((state) => [state, found.get(state) ?? 0]))
      return { ...counts, ready } as ItemCounts
    },
    follow: async (id, conversation, at) => {
      await db
        .insertInto('item_followers')
        .values({ item_id: id, conversation, since: at })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    },
    followers: async (id) => {
      const rows = await db
        .selectFrom('item_followers')
        .select('conversation')
        .where('item_id', '=', id)
        .orderBy('since')
        .execute()
      return rows.map(({ conversation }) => conversation)
    },
  }
}

type Items = SelectQueryBuilder<Tables, 'items', ItemRow>

const itemsOf = (db: Kysely<Tables>, narrow: (query: Items) => Items): Promise<Item[]> =>
  withDependencies(db, narrow(db.selectFrom('items').selectAll()).execute())

/** All its dependencies are settled. */
const isReady = () =>
  sql<boolean>`not exists (
    select 1 from item_dependencies as needs inner join items as needed on needed.id = needs.after_id
    where needs.item_id = items.id and needed.state not in (${sql.join(settledStates.map((state) => sql.lit(state)))}))`

const bySource = async (
  db: Kysely<Tables>,
  { codebaseId, source }: NewItem,
): Promise<{ readonly id: number } | undefined> =>
  source &&
  db
    .selectFrom('items')
    .select('id')
    .where('codebase_id', '=', codebaseId)
    .where('source_key', '=', sourceKey(source))
    .executeTakeFirst()

const insert = async (db: Kysely<Tables>, item: Item, change: ItemChange): Promise<void> => {
  await db.insertInto('items').values(toRow(item)).execute()
  await insertDependencies(db, item.id, item.after)
  await note(db, item.id, change, { by: item.createdBy, at: item.createdAt })
}

const insertDependencies = async (db: Kysely<Tables>, id: number, after: readonly number[]): Promise<void> => {
  if (after.length === 0) return
  await db
    .insertInto('item_dependencies')
    .values([...new Set(after)].map((one) => ({ item_id: id, after_id: one })))
    .execute()
}

const note = async (db: Kysely<Tables>, id: number, change: ItemChange, { by, at }: Signed): Promise<void> => {
  await db
    .insertInto('item_history')
    .values({ item_id: id, at, by, change: toJson(change) })
    .execute()
}
