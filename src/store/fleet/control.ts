import type { Kysely } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'
import type { FleetControlRow } from './tables.ts'
import type { FleetControl, FleetControlStore } from './store.ts'

export const fleetControlStore = (db: Kysely<Tables>, engine: Engine): FleetControlStore => ({
  get: async (host) =>
    fromRow(await db.selectFrom('fleet_control').selectAll().where('host', '=', host).executeTakeFirst()),
  lock: async (host) => {
    await db
      .insertInto('fleet_control')
      .values({ host, ...initial })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const row = db.selectFrom('fleet_control').selectAll().where('host', '=', host)
    return fromRow(await (engine.rowLocks ? row.forUpdate() : row).executeTakeFirst())
  },
  set: async (host, control) => {
    await db
      .insertInto('fleet_control')
      .values({ host, ...control })
      .onConflict((conflict) => conflict.column('host').doUpdateSet({ ...control }))
      .execute()
  },
})

const initial = { state: 'up', why: '', since: 0 } as const

const fromRow = (row: FleetControlRow | undefined): FleetControl =>
  row === undefined ? initial : { state: row.state as FleetControl['state'], why: row.why, since: row.since }
