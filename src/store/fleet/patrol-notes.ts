import type { Kysely } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import { inTransaction } from '../engine.ts'
import { fromJson, orUndefined, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import type { PatrolNote, PatrolNoteStore } from './store.ts'
import type { PatrolNoteRow } from './tables.ts'

export const patrolNoteStore = (db: Kysely<Tables>): PatrolNoteStore => ({
  ofHost: async (host) =>
    (await db.selectFrom('patrol_notes').selectAll().where('host', '=', host).execute()).map(fromRow),
  see: (host, { subject, what, life, at, data }) =>
    inTransaction(db, async (inside) => {
      const first = { life, first_seen: at, last_seen: at, times: 1, reported_at: null, data: toJson(data ?? {}) }
      await inside
        .deleteFrom('patrol_notes')
        .where('host', '=', host)
        .where('subject', '=', subject)
        .where('what', '=', what)
        .where('life', '<>', life)
        .execute()
      const row = await inside
        .insertInto('patrol_notes')
        .values({ host, subject, what, ...first })
        .onConflict((conflict) =>
          conflict.columns(['host', 'subject', 'what']).doUpdateSet((eb) => ({
            last_seen: at,
            times: eb('patrol_notes.times', '+', 1),
            ...(data !== undefined && { data: toJson(data) }),
          })),
        )
        .returningAll()
        .executeTakeFirst()
      if (row === undefined) throw new AppError('store-failed', `the patrol's note ${what} was not recorded`)
      return fromRow(row)
    }),
  report: async (host, { subject, what, life }, at) => {
    const result = await db
      .updateTable('patrol_notes')
      .set({ reported_at: at })
      .where('host', '=', host)
      .where('subject', '=', subject)
      .where('what', '=', what)
      .where('life', '=', life)
      .where('reported_at', 'is', null)
      .executeTakeFirst()
    return result.numUpdatedRows === 1n
  },
  clear: async (host, notes) => {
    for (const [what, those] of Map.groupBy(notes, (note) => note.what)) {
      await db
        .deleteFrom('patrol_notes')
        .where('host', '=', host)
        .where('what', '=', what)
        .where(
          'subject',
          'in',
          those.map(({ subject }) => subject),
        )
        .execute()
    }
  },
})

const fromRow = (row: PatrolNoteRow): PatrolNote => ({
  subject: row.subject,
  what: row.what,
  life: row.life,
  firstSeen: row.first_seen,
  lastSeen: row.last_seen,
  times: row.times,
  reportedAt: orUndefined(row.reported_at),
  data: fromJson(row.data) as PatrolNote['data'],
})
