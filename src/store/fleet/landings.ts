import type { Kysely } from 'kysely'
import {
  assertLandingTransition,
  type Landing,
  type LandingGate,
  type LandingRefusal,
  type LandingState,
  type LandingTodo,
  openLandingStates,
} from '../../domain/fleet/landing.ts'
import { type Sha, toCodebaseId } from '../../domain/names.ts'
import { inTransaction } from '../engine.ts'
import { fromJson, orNull, orUndefined, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import type { LandingRow } from './tables.ts'
import { takeNumber } from './counters.ts'
import { landingQueues } from './landing-queues.ts'
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
          .where('state', 'in', openLandingStates)
          .execute()
        const queued: Landing = {
          ...landing,
          id,
          baseBranch: landing.baseBranch,
          mergeCommit: landing.mergeCommit,
          state: 'queued',
          landedSha: undefined,
          attempts: 0,
          gate: undefined,
          why: undefined,
          todo: undefined,
          updatedAt: landing.createdAt,
        }
        await inside.insertInto('landings').values(toRow(queued)).execute()
        return queued
      }),
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    list: async ({ codebaseId, states, itemId, limit }) => {
      const some = codebaseId === undefined ? all() : all().where('codebase_id', '=', codebaseId)
      const ofItem = itemId === undefined ? some : some.where('item_id', '=', itemId)
      const inStates = states === undefined ? ofItem : ofItem.where('state', 'in', states)
      return (await inStates.orderBy('id', 'desc').limit(limit).execute()).map(fromRow)
    },
    pending: async (codebaseId) => {
      const some = codebaseId === undefined ? all() : all().where('codebase_id', '=', codebaseId)
      const rows = await some
        .where((eb) => eb.or([eb('state', 'in', openLandingStates), eb('todo', 'is not', null)]))
        .orderBy('id')
        .execute()
      return rows.map(fromRow)
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
    finish: async (id, todo) => {
      const update = db.updateTable('landings').set({ todo: null }).where('id', '=', id).where('todo', '=', todo)
      return (await update.executeTakeFirst()).numUpdatedRows === 1n
    },
    ...landingQueues(db),
  }
}

const columnsOf = (patch: LandingPatch): Partial<LandingRow> => ({
  ...(patch.landedSha !== undefined && { landed_sha: patch.landedSha }),
  ...(patch.attempts !== undefined && { attempts: patch.attempts }),
  ...(patch.gate !== undefined && { gate: toJson(patch.gate) }),
  ...(patch.why !== undefined && { why: toJson(patch.why) }),
  ...('todo' in patch && { todo: orNull(patch.todo) }),
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
  base_branch: orNull(landing.baseBranch),
  merge_commit: orNull(landing.mergeCommit),
  why: landing.why === undefined ? null : toJson(landing.why),
  todo: orNull(landing.todo),
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
  baseBranch: orUndefined(row.base_branch),
  mergeCommit: orUndefined(row.merge_commit) as Sha | undefined,
  why: row.why === null ? undefined : (fromJson(row.why) as LandingRefusal),
  todo: orUndefined(row.todo) as LandingTodo | undefined,
  createdBy: row.created_by,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
