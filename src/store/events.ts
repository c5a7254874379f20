import type { Kysely } from 'kysely'
import { type EventRecord, fromStoredFields, type StoredFields } from '../domain/fleet/event-record.ts'
import { type CodebaseId, type EnvironmentId, toCodebaseId, toEnvironmentId } from '../domain/names.ts'
import { takeNumber } from './fleet/counters.ts'
import { fromJson, orNull, orUndefined, toJson } from './rows.ts'
import type { EventTableRow } from './fleet/tables.ts'
import type { Tables } from './tables.ts'

export type EventRow = {
  readonly id: string
  readonly at: number
  readonly kind: string
  readonly codebaseId: CodebaseId | undefined
  readonly environmentId: EnvironmentId | undefined
  readonly data: Readonly<Record<string, unknown>>
}

/** An event of the fleet, before it has its number. */
export type NewEvent = Pick<EventRow, 'id' | 'at' | 'kind' | 'codebaseId'> &
  Pick<EventRecord, 'itemId' | 'agent' | 'codebase'> & { readonly fields: StoredFields }

export type EventStore = {
  append(event: EventRow): Promise<void>
  /** Newest first. */
  recent(filter: { kind?: string; codebaseId?: CodebaseId; limit: number }): Promise<EventRow[]>
  /**
   * Adds an event of the fleet. It gets its number when the transaction commits: events appear in the order of their
   * numbers, so a reader who continues after the last number it has seen misses none.
   */
  record(event: NewEvent): Promise<void>
  /** In order: the first ones after a number, or the last ones before one. */
  page(page: { readonly after: number; readonly limit: number }): Promise<EventRecord[]>
  page(page: { readonly before: number; readonly limit: number }): Promise<EventRecord[]>
  /** The last number; 0 if nothing was ever recorded. */
  latest(): Promise<number>
  latestOfItem(itemId: number): Promise<EventRecord | undefined>
  /** Deletes events and reports from before this time. */
  deleteBefore(at: number): Promise<number>
  /** Calls back after each commit of this process that recorded events, with the first one's number. */
  onRecorded(listener: (first: number) => void): () => void
}

/** What the stores of one database share, inside and outside of transactions. */
export type EventListeners = Set<(first: number) => void>

export type EventRecording = {
  readonly listeners: EventListeners
  /** In a transaction: adds it to those that `numberEvents` gets. Outside: in a transaction of its own. */
  readonly record: EventStore['record']
}

export const eventStore = (db: Kysely<Tables>, { listeners, record }: EventRecording): EventStore => {
  const numbered = () =>
    db.selectFrom('events').select(['number', 'at', 'kind', 'item_id', 'data']).where('number', 'is not', null)
  return {
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
    record,
    page: async (page: { after?: number; before?: number; limit: number }) => {
      const { after, before = Number.MAX_SAFE_INTEGER, limit } = page
      if (after !== undefined) {
        return (await numbered().where('number', '>', after).orderBy('number').limit(limit).execute()).map(toRecord)
      }
      const last = numbered().where('number', '<', before).orderBy('number', 'desc').limit(limit)
      return (await last.execute()).map(toRecord).toReversed()
    },
    latest: async () => {
      const row = await db.selectFrom('counters').select('next').where('name', '=', 'events').executeTakeFirst()
      return (row?.next ?? 1) - 1
    },
    latestOfItem: async (itemId) => {
      const found = numbered().where('item_id', '=', itemId).orderBy('number', 'desc').limit(1)
      const row = await found.executeTakeFirst()
      return row === undefined ? undefined : toRecord(row)
    },
    deleteBefore: async (at) =>
      Number((await db.deleteFrom('events').where('at', '<', at).executeTakeFirst()).numDeletedRows),
    onRecorded: (listener) => {
      // Wrapped, so that a function can subscribe twice.
      const own = (first: number): void => listener(first)
      listeners.add(own)
      return () => listeners.delete(own)
    },
  }
}

/**
 * Gives events their numbers and inserts them; returns the first number. Call right before the transaction commits: the
 * counter stays locked from here on, so nobody waits for it for long, nor for anything else while holding it.
 */
export const numberEvents = async (db: Kysely<Tables>, events: readonly NewEvent[]): Promise<number | undefined> => {
  if (events.length === 0) return undefined
  const first = await takeNumber(db, 'events', events.length)
  const rows = events.map(({ agent, codebase, fields, itemId, ...event }, i) => ({
    ...toRow({ ...event, environmentId: undefined, data: { agent, codebase, fields } }),
    number: first + i,
    item_id: orNull(itemId),
  }))
  await db.insertInto('events').values(rows).execute()
  return first
}

const toRow = (event: EventRow): Omit<EventTableRow, 'seq'> => ({
  id: event.id,
  at: event.at,
  kind: event.kind,
  codebase_id: orNull(event.codebaseId),
  environment_id: orNull(event.environmentId),
  data: toJson(event.data),
  number: null,
  item_id: null,
})

const fromRow = (row: Omit<EventTableRow, 'seq' | 'number' | 'item_id'>): EventRow => ({
  id: row.id,
  at: row.at,
  kind: row.kind,
  codebaseId: row.codebase_id === null ? undefined : toCodebaseId(row.codebase_id),
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  data: fromJson(row.data) as Record<string, unknown>,
})

const toRecord = (row: Pick<EventTableRow, 'number' | 'at' | 'kind' | 'item_id' | 'data'>): EventRecord => {
  const { agent, codebase, fields } = fromJson(row.data) as Pick<NewEvent, 'agent' | 'codebase' | 'fields'>
  return {
    number: row.number ?? 0,
    at: row.at,
    kind: row.kind,
    itemId: orUndefined(row.item_id),
    agent,
    codebase,
    event: fromStoredFields(row.kind, fields),
  }
}
