import type { Kysely } from 'kysely'
import { toCodebaseId, toEnvironmentId } from '../domain/names.ts'
import { fromJson, orNull, toJson } from './rows.ts'
import type { EventRow, EventStore } from './store.ts'
import type { EventTableRow, Tables } from './tables.ts'

export const eventStore = (db: Kysely<Tables>): EventStore => ({
  append: async (event) => {
    await db.insertInto('events').values(toRow(event)).execute()
  },
  recent: async ({ kind, codebaseId, limit }) => {
    const all = db.selectFrom('events').select(['id', 'at', 'kind', 'codebase_id', 'environment_id', 'data'])
    const ofKind = kind === undefined ? all : all.where('kind', '=', kind)
    const filtered = codebaseId === undefined ? ofKind : ofKind.where('codebase_id', '=', codebaseId)
    // Events in the same millisecond keep their order.
    return (await filtered.orderBy('at', 'desc').orderBy('seq', 'desc').limit(limit).execute()).map(fromRow)
  },
})

const toRow = (event: EventRow): Omit<EventTableRow, 'seq'> => ({
  id: event.id,
  at: event.at,
  kind: event.kind,
  codebase_id: orNull(event.codebaseId),
  environment_id: orNull(event.environmentId),
  data: toJson(event.data),
})

const fromRow = (row: Omit<EventTableRow, 'seq'>): EventRow => ({
  id: row.id,
  at: row.at,
  kind: row.kind,
  codebaseId: row.codebase_id === null ? undefined : toCodebaseId(row.codebase_id),
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  data: fromJson(row.data) as Record<string, unknown>,
})
