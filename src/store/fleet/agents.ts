/*
 * The fleet's agents in the database. In: agents and state transitions. Out: agents. Unique indexes ensure that a name
 * and an item belong to one agent.
 */
import { type Kysely, sql } from 'kysely'
import {
  assertAgentTransition,
  type FleetAgent,
  type FleetAgentKind,
  type FleetAgentState,
  type FleetSession,
} from '../../domain/fleet/agent.ts'
import { toCodebaseId, toEnvironmentId } from '../../domain/names.ts'
import { lockCodebase } from '../codebases.ts'
import { type Engine, inTransaction } from '../engine.ts'
import { fromJson, orNull, orUndefined, patchedColumns, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import { IDS_PER_QUERY, inChunks } from './chunks.ts'
import type { FleetAgentRow } from './tables.ts'
import type { FleetAgentPatch, FleetAgentStore } from './store.ts'

export const fleetAgentStore = (db: Kysely<Tables>, engine: Engine): FleetAgentStore => {
  const all = () => db.selectFrom('agents').selectAll()
  // A literal: SQLite uses a partial index only then, and would plan the statement again for each use.
  const live = () => all().where(sql<boolean>`state <> 'gone'`)
  return {
    insert: (agent) =>
      inTransaction(db, async (inside) => {
        // Prevents a concurrent removal of the codebase from deleting this row unnoticed.
        await lockCodebase(inside, engine, agent.codebaseId)
        const result = await inside
          .insertInto('agents')
          .values(toRow(agent))
          // Without the error of a unique index, which would abort the transaction on PostgreSQL.
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst()
        if (result.numInsertedOrUpdatedRows === 1n) return 'inserted'
        const { itemId } = agent
        const ofItem = inside
          .selectFrom('agents')
          .select('id')
          .where('item_id', '=', itemId ?? -1)
        return (await ofItem.executeTakeFirst()) === undefined ? 'name-taken' : 'item-taken'
      }),
    get: async (id) => found(await all().where('id', '=', id).executeTakeFirst()),
    byName: async (host, name) =>
      found(await live().where('host', '=', host).where('name', '=', name).executeTakeFirst()),
    lastGone: async (host, name) => {
      const gone = all().where('host', '=', host).where('name', '=', name).where('state', '=', 'gone')
      return found(await gone.orderBy('ended_at', 'desc').limit(1).executeTakeFirst())
    },
    live: async ({ host, codebaseId } = {}) => {
      const ofHost = host === undefined ? live() : live().where('host', '=', host)
      const some = codebaseId === undefined ? ofHost : ofHost.where('codebase_id', '=', codebaseId)
      return (await some.orderBy('name').orderBy('host').execute()).map(fromRow)
    },
    ofItems: async (ids) => {
      const found: FleetAgent[] = []
      for (const some of inChunks(ids, IDS_PER_QUERY)) {
        found.push(...(await all().where('item_id', 'in', some).orderBy('item_id').execute()).map(fromRow))
      }
      return found
    },
    ofEnvironments: async (ids) =>
      ids.length === 0 ? [] : (await live().where('environment_id', 'in', ids).orderBy('name').execute()).map(fromRow),
    move: async (id, from, to, patch = {}) => {
      assertAgentTransition(from, to)
      const result = await db
        .updateTable('agents')
        .set({ ...columnsOf(patch), ...(to === 'gone' && { item_id: null }), state: to })
        .where('id', '=', id)
        .where('state', '=', from)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    update: async (id, patch) => {
      const set = columnsOf(patch)
      if (Object.keys(set).length > 0) await db.updateTable('agents').set(set).where('id', '=', id).execute()
    },
    claim: async (id, expected, holder) => {
      const result = await db
        .updateTable('agents')
        .set({ holder_pid: holder.pid, holder_start_time: holder.startTime })
        .where('id', '=', id)
        .where('holder_pid', '=', expected.pid)
        .where('holder_start_time', '=', expected.startTime)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    deleteGone: async (before) => {
      const result = await db
        .deleteFrom('agents')
        .where('state', '=', 'gone')
        .where('ended_at', '<', before)
        .executeTakeFirst()
      return Number(result.numDeletedRows)
    },
  }
}

const columnsOf = (patch: FleetAgentPatch): Partial<FleetAgentRow> => {
  const { holder, session, ...plain } = patch
  const columns = {
    itemId: 'item_id',
    environmentId: 'environment_id',
    codebaseId: 'codebase_id',
    spawn: 'spawn',
    restarts: 'restarts',
    lastSignAt: 'last_sign_at',
    workedAt: 'worked_at',
    drainingSince: 'draining_since',
    endedAt: 'ended_at',
    program: 'program',
  } as const
  return {
    ...patchedColumns<typeof plain, FleetAgentRow>(plain, columns),
    ...(holder !== undefined && { holder_pid: holder.pid, holder_start_time: holder.startTime }),
    ...('session' in patch && { session: session === undefined ? null : toJson(session) }),
  }
}

const toRow = (agent: FleetAgent): FleetAgentRow => ({
  id: agent.id,
  host: agent.host,
  name: agent.name,
  kind: agent.kind,
  pool: orNull(agent.pool),
  codebase_id: agent.codebaseId,
  program: agent.program,
  state: agent.state,
  item_id: orNull(agent.itemId),
  environment_id: orNull(agent.environmentId),
  spawn: agent.spawn,
  session: agent.session === undefined ? null : toJson(agent.session),
  restarts: agent.restarts,
  last_sign_at: agent.lastSignAt,
  worked_at: orNull(agent.workedAt),
  draining_since: orNull(agent.drainingSince),
  holder_pid: agent.holder.pid,
  holder_start_time: agent.holder.startTime,
  created_at: agent.createdAt,
  ended_at: orNull(agent.endedAt),
})

const found = (row: FleetAgentRow | undefined): FleetAgent | undefined => (row === undefined ? undefined : fromRow(row))

const fromRow = (row: FleetAgentRow): FleetAgent => ({
  id: row.id,
  host: row.host,
  name: row.name,
  kind: row.kind as FleetAgentKind,
  pool: orUndefined(row.pool),
  codebaseId: toCodebaseId(row.codebase_id),
  program: row.program,
  state: row.state as FleetAgentState,
  itemId: orUndefined(row.item_id),
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  spawn: row.spawn,
  session: row.session === null ? undefined : (fromJson(row.session) as FleetSession),
  restarts: row.restarts,
  lastSignAt: row.last_sign_at,
  workedAt: orUndefined(row.worked_at),
  drainingSince: orUndefined(row.draining_since),
  holder: { pid: row.holder_pid, startTime: row.holder_start_time },
  createdAt: row.created_at,
  endedAt: orUndefined(row.ended_at),
})
