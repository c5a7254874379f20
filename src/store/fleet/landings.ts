import type { Kysely } from 'kysely'
import {
  assertLandingTransition,
  type Landing,
  type LandingGate,
  type LandingState,
} from '../../domain/fleet/landing.ts'
import { type Sha, toCodebaseId } from '../../domain/names.ts'
import { inTransaction } from '../engine.ts'
import { fromJson, orNull, orUndefined, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import type { LandingRow } from './tables.ts'
import { takeNumber } from './counters.ts'
import type { LandingPatch, LandingStore } from './store.ts'

export const landingStore = (db: Kysely<Tables>): LandingStore => {
  const all = () => db.selectFrom('landings').selectAll()
  return {
    enqueue: (landing) =>
      inTransaction(db, async (inside) => {
        const id = await takeNumber(inside, 'landings')
        await inside
          .updateTable('landings')
          .set({ state: 'superseded', updated_at: landing.createdAt })
          .where('codebase_id', '=', landing.codebaseId)
          .where('branch', '=', landing.branch)
          .where('state', 'in', ['queued', 'testing'])
          .execute()
        const queued: Landing = {
          ...landing,
          id,
          state: 'queued',
          landedSha: undefined,
          attempts: 0,
          gate: undefined,
          updatedAt: landing.createdAt,
        }
        await inside.insertInto('landings').values(toRow(queued)).execute()
        return queued
      }),
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    list: async ({ codebaseId, states, limit }) => {
      const some = codebaseId === undefined ? all() : all().where('codebase_id', '=', codebaseId)
      const inStates = states === undefined ? some : some.where('state', 'in', states)
      return (await inStates.orderBy('id', 'desc').limit(limit).execute()).map(fromRow)
    },
    move: async (id, from, to, at, patch = {}) => {
      assertLandingTransition(from, to)
      const result = await db
        .updateTable('landings')
        .set({ ...columnsOf(patch), state: to, updated_at: at })
        .where('id', '=', id)
        .where('state', '=', from)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
  }
}

const columnsOf = (patch: LandingPatch): Partial<LandingRow> => ({
  ...(patch.sha !== undefined && { sha: patch.sha }),
  ...(patch.landedSha !== undefined && { landed_sha: patch.landedSha }),
  ...(patch.attempts !== undefined && { attempts: patch.attempts }),
  ...(patch.gate !== undefined && { gate: toJson(patch.gate) }),
})

const toRow = (landing: Landing): LandingRow => ({
  id: landing.id,
  codebase_id: landing.codebaseId,
  item_id: orNull(landing.itemId),
  branch: landing.branch,
  sha: landing.sha,
  state: landing.state,
  landed_sha: orNull(landing.landedSha),
  attempts: landing.attempts,
  gate: landing.gate === undefined ? null : toJson(landing.gate),
  created_by: landing.createdBy,
  created_at: landing.createdAt,
  updated_at: landing.updatedAt,
})

const fromRow = (row: LandingRow): Landing => ({
  id: row.id,
  codebaseId: toCodebaseId(row.codebase_id),
  itemId: orUndefined(row.item_id),
  branch: row.branch,
  sha: row.sha as Sha,
  state: row.state as LandingState,
  landedSha: orUndefined(row.landed_sha) as Sha | undefined,
  attempts: row.attempts,
  gate: row.gate === null ? undefined : (fromJson(row.gate) as LandingGate),
  createdBy: row.created_by,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
