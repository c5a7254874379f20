import type { Kysely } from 'kysely'
import {
  defaultPriority,
  type Item,
  type ItemSource,
  type ItemState,
  type ParkReason,
  sourceKey,
  toPriority,
} from '../../domain/fleet/item.ts'
import { toCodebaseId, toEnvironmentId } from '../../domain/names.ts'
import { fromJson, orNull, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import { IDS_PER_QUERY, inChunks } from './chunks.ts'
import type { ItemPatch } from './store.ts'
import type { ItemRow } from './tables.ts'

/** The items of these rows, with their dependencies. */
export const withDependencies = async (db: Kysely<Tables>, found: Promise<ItemRow[]>): Promise<Item[]> => {
  const rows = await found
  const byItem = new Map<number, number[]>()
  for (const some of inChunks(rows, IDS_PER_QUERY)) {
    const ids = some.map(({ id }) => id)
    const needs = db.selectFrom('item_dependencies').selectAll().where('item_id', 'in', ids).orderBy('after_id')
    for (const { item_id: id, after_id: after } of await needs.execute()) {
      byItem.set(id, [...(byItem.get(id) ?? []), after])
    }
  }
  return rows.map((row) => fromRow(row, byItem.get(row.id) ?? []))
}

export const toRow = (item: Item): ItemRow => ({
  id: item.id,
  codebase_id: item.codebaseId,
  title: item.title,
  body: item.body,
  priority: item.priority,
  state: item.state,
  environment_id: orNull(item.environmentId),
  source: item.source === undefined ? null : toJson(item.source),
  source_key: item.source === undefined ? null : sourceKey(item.source),
  parked: item.parked === undefined ? null : toJson(item.parked),
  pull_request: orNull(item.pullRequest),
  created_by: item.createdBy,
  created_at: item.createdAt,
  updated_at: item.updatedAt,
})

/** An absent field keeps its column. */
export const columnsOf = (patch: ItemPatch): Partial<ItemRow> => ({
  ...('environmentId' in patch && { environment_id: orNull(patch.environmentId) }),
  ...('parked' in patch && { parked: patch.parked === undefined ? null : toJson(patch.parked) }),
  ...('pullRequest' in patch && { pull_request: orNull(patch.pullRequest) }),
  ...(patch.source !== undefined && { source: toJson(patch.source), source_key: sourceKey(patch.source) }),
})

const fromRow = (row: ItemRow, after: readonly number[]): Item => ({
  id: row.id,
  codebaseId: toCodebaseId(row.codebase_id),
  title: row.title,
  body: row.body,
  priority: toPriority(row.priority) ?? defaultPriority,
  state: row.state as ItemState,
  after,
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  source: row.source === null ? undefined : (fromJson(row.source) as ItemSource),
  parked: row.parked === null ? undefined : (fromJson(row.parked) as ParkReason),
  pullRequest: row.pull_request ?? undefined,
  createdBy: row.created_by,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
