import type { Kysely } from 'kysely'
import { AppError } from '../domain/errors.ts'
import { toCodebaseId, toEnvironmentId } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { type Engine, inTransaction } from './engine.ts'
import { fromJson, orNull, toJson } from './rows.ts'
import type { JournalEntry, JournalKind, JournalStore } from './store.ts'
import type { JournalRow, Tables } from './tables.ts'

export const journalStore = (db: Kysely<Tables>, engine: Engine): JournalStore => ({
  begin: async (entry) => {
    await db.insertInto('journal').values(toRow(entry)).execute()
  },
  advance: (id, change) =>
    inTransaction(db, async (transaction) => {
      const query = transaction.selectFrom('journal').selectAll().where('id', '=', id)
      const row = await (engine.rowLocks ? query.forUpdate() : query).executeTakeFirst()
      // Without its intent, an effect could never be finished or undone, so don't start it.
      if (row === undefined) throw new AppError('store-failed', `journal entry ${id} no longer exists`)
      const set: Partial<JournalRow> = {
        step: change.step ?? row.step,
        data: toJson({ ...(fromJson(row.data) as object), ...change.data }),
        ...(change.child === undefined ? {} : childColumns(change.child ?? undefined)),
      }
      await transaction.updateTable('journal').set(set).where('id', '=', id).execute()
    }),
  end: async (id) => {
    await db.deleteFrom('journal').where('id', '=', id).execute()
  },
  get: async (id) => {
    const row = await db.selectFrom('journal').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : fromRow(row)
  },
  open: async (host, codebaseId) => {
    const ofHost = db.selectFrom('journal').selectAll().where('host', '=', host)
    const filtered = codebaseId === undefined ? ofHost : ofHost.where('codebase_id', '=', codebaseId)
    return (await filtered.orderBy('started_at').orderBy('id').execute()).map(fromRow)
  },
})

const childColumns = (child: ProcessIdentity | undefined) => ({
  child_pid: orNull(child?.pid),
  child_start_time: orNull(child?.startTime),
})

const toRow = (entry: JournalEntry): JournalRow => ({
  id: entry.id,
  host: entry.host,
  codebase_id: orNull(entry.codebaseId),
  environment_id: orNull(entry.environmentId),
  kind: entry.kind,
  step: entry.step,
  data: toJson(entry.data),
  holder_pid: entry.holder.pid,
  holder_start_time: entry.holder.startTime,
  ...childColumns(entry.child),
  started_at: entry.startedAt,
})

const fromRow = (row: JournalRow): JournalEntry => ({
  id: row.id,
  host: row.host,
  codebaseId: row.codebase_id === null ? undefined : toCodebaseId(row.codebase_id),
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  kind: row.kind as JournalKind,
  step: row.step,
  data: fromJson(row.data) as Record<string, unknown>,
  holder: { pid: row.holder_pid, startTime: row.holder_start_time },
  child:
    row.child_pid === null || row.child_start_time === null
      ? undefined
      : { pid: row.child_pid, startTime: row.child_start_time },
  startedAt: row.started_at,
})
