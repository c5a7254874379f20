import type { Kysely } from 'kysely'
import { toEnvironmentId } from '../domain/names.ts'
import type { Lease, LeaseStore } from './store.ts'
import type { LeaseRow, Tables } from './tables.ts'

export const leaseStore = (db: Kysely<Tables>): LeaseStore => {
  const oldestFirst = () => db.selectFrom('leases').selectAll().orderBy('created_at').orderBy('id')
  return {
    insert: async (lease) => {
      await db.insertInto('leases').values(toRow(lease)).execute()
    },
    ofEnvironments: async (ids) =>
      ids.length === 0 ? [] : (await oldestFirst().where('environment_id', 'in', ids).execute()).map(fromRow),
    all: async (host) => (await oldestFirst().where('host', '=', host).execute()).map(fromRow),
    remove: async (id) => {
      await db.deleteFrom('leases').where('id', '=', id).execute()
    },
  }
}

const toRow = (lease: Lease): LeaseRow => ({
  id: lease.id,
  host: lease.host,
  environment_id: lease.environmentId,
  purpose: lease.purpose,
  holder_pid: lease.holder.pid,
  holder_start_time: lease.holder.startTime,
  created_at: lease.createdAt,
})

const fromRow = (row: LeaseRow): Lease => ({
  id: row.id,
  host: row.host,
  environmentId: toEnvironmentId(row.environment_id),
  purpose: row.purpose,
  holder: { pid: row.holder_pid, startTime: row.holder_start_time },
  createdAt: row.created_at,
})
