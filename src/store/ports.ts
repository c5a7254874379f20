import type { Kysely } from 'kysely'
import type { EnvironmentId } from '../domain/names.ts'
import type { Tables } from './tables.ts'

export type PortStore = {
  /** False if another environment on this host has it. */
  lease(host: string, port: number, environmentId: EnvironmentId, name: string, at: number): Promise<boolean>
  ofEnvironment(environmentId: EnvironmentId): Promise<{ name: string; port: number }[]>
  taken(host: string): Promise<number[]>
  release(environmentId: EnvironmentId): Promise<void>
}

export const portStore = (db: Kysely<Tables>): PortStore => ({
  lease: async (host, port, environmentId, name, at) => {
    // Leasing one's own port again is fine; another environment's row stays unchanged.
    const result = await db
      .insertInto('ports')
      .values({ host, port, environment_id: environmentId, name, created_at: at })
      .onConflict((conflict) =>
        conflict.columns(['host', 'port']).doUpdateSet({ name }).where('ports.environment_id', '=', environmentId),
      )
      .executeTakeFirst()
    return result.numInsertedOrUpdatedRows === 1n
  },
  ofEnvironment: (environmentId) =>
    db
      .selectFrom('ports')
      .select(['name', 'port'])
      .where('environment_id', '=', environmentId)
      .orderBy('port')
      .execute(),
  taken: async (host) => {
    const rows = await db.selectFrom('ports').select('port').where('host', '=', host).orderBy('port').execute()
    return rows.map((row) => row.port)
  },
  release: async (environmentId) => {
    await db.deleteFrom('ports').where('environment_id', '=', environmentId).execute()
  },
})
