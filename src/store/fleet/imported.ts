import type { Kysely } from 'kysely'
import type { ItemChange } from '../../domain/fleet/item.ts'
import { toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import { inChunks } from './chunks.ts'
import { toRow } from './item-rows.ts'
import type { ImportedItem } from './store.ts'

/** Many rows per statement: 100,000 items block other writers for seconds instead of minutes. */
export const insertImported = async (db: Kysely<Tables>, items: readonly ImportedItem[]): Promise<void> => {
  for (const some of inChunks(items, ROWS_PER_STATEMENT)) {
    await db.insertInto('items').values(some.map(rowOf)).execute()
    const history = some.map(({ id, createdAt, createdBy, source }) => ({
      item_id: id,
      at: createdAt,
      by: createdBy,
      change: toJson({ kind: 'imported', from: source.kind } satisfies ItemChange),
    }))
    await db.insertInto('item_history').values(history).execute()
  }
  // After all items, since they may depend on each other.
  const needs = items.flatMap(({ id, after }) => [...new Set(after)].map((one) => ({ item_id: id, after_id: one })))
  for (const some of inChunks(needs, ROWS_PER_STATEMENT))
    await db.insertInto('item_dependencies').values(some).execute()
}

const rowOf = ({ parked, ...item }: ImportedItem) =>
  toRow({
    ...item,
    parked,
    state: parked === undefined ? 'open' : 'parked',
    environmentId: undefined,
    pullRequest: undefined,
    updatedAt: item.createdAt,
  })

/** An item needs 14 variables of a statement's 32,766. */
const ROWS_PER_STATEMENT = 1_000
