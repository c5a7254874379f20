import type { Kysely } from 'kysely'
import { type Sha, toCodebaseId } from '../domain/names.ts'
import type { Spare, SpareStore } from './store.ts'
import type { SpareRow, Tables } from './tables.ts'

export const spareStore = (db: Kysely<Tables>): SpareStore => ({
  insert: async (spare) => {
    await db.insertInto('spares').values(toRow(spare)).execute()
  },
  list: async (codebaseId) => {
    const rows = await db
      .selectFrom('spares')
      .selectAll()
      .where('codebase_id', '=', codebaseId)
      .orderBy('created_at')
      .orderBy('id')
      .execute()
    return rows.map(fromRow)
  },
  claim: async (id) => {
    const result = await db.deleteFrom('spares').where('id', '=', id).executeTakeFirst()
    return result.numDeletedRows === 1n
  },
})

const toRow = (spare: Spare): SpareRow => ({
  id: spare.id,
  host: spare.host,
  codebase_id: spare.codebaseId,
  path: spare.path,
  admin_name: spare.adminName,
  sha: spare.sha,
  created_at: spare.createdAt,
})

const fromRow = (row: SpareRow): Spare => ({
  id: row.id,
  host: row.host,
  codebaseId: toCodebaseId(row.codebase_id),
  path: row.path,
  adminName: row.admin_name,
  sha: row.sha as Sha,
  createdAt: row.created_at,
})
