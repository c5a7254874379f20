import type { Kysely } from 'kysely'
import type { LandingPush, LandingQueue } from '../../domain/fleet/landing.ts'
import { type Sha, toCodebaseId } from '../../domain/names.ts'
import { fromJson, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import { holderColumns, holderOf, isHeldBy } from './holder.ts'
import type { LandingQueueRow } from './tables.ts'
import type { LandingStore } from './store.ts'

type Queues = Pick<LandingStore, 'queue' | 'claimQueue' | 'updateQueue' | 'blockedQueues'>

export const landingQueues = (db: Kysely<Tables>): Queues => {
  const all = () => db.selectFrom('landing_queues').selectAll()
  return {
    queue: async (codebaseId) => {
      const row = await all().where('codebase_id', '=', codebaseId).executeTakeFirst()
      return row === undefined
        ? { codebaseId, holder: undefined, push: undefined, green: undefined, blocked: undefined }
        : fromRow(row)
    },
    claimQueue: async (codebaseId, expected, holder) => {
      await db
        .insertInto('landing_queues')
        .values({ ...empty, codebase_id: codebaseId })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      const update = db.updateTable('landing_queues').set(holderColumns(holder)).where('codebase_id', '=', codebaseId)
      return (await update.where(isHeldBy(expected)).executeTakeFirst()).numUpdatedRows === 1n
    },
    updateQueue: async (codebaseId, patch) => {
      await db
        .updateTable('landing_queues')
        .set({
          ...('push' in patch && { push: jsonOrNull(patch.push) }),
          ...('blocked' in patch && { blocked: jsonOrNull(patch.blocked) }),
          ...('green' in patch && {
            green_commit: patch.green?.commit ?? null,
            green_gates: patch.green?.gates ?? null,
          }),
        })
        .where('codebase_id', '=', codebaseId)
        .execute()
    },
    blockedQueues: async () => (await all().where('blocked', 'is not', null).execute()).map(fromRow),
  }
}

const jsonOrNull = (value: object | undefined): string | null => (value === undefined ? null : toJson(value))

const empty = {
  holder_host: null,
  holder_pid: null,
  holder_start_time: null,
  push: null,
  green_commit: null,
  green_gates: null,
  blocked: null,
} as const

const fromRow = (row: LandingQueueRow): LandingQueue => ({
  codebaseId: toCodebaseId(row.codebase_id),
  holder: holderOf(row),
  push: row.push === null ? undefined : (fromJson(row.push) as LandingPush),
  green:
    row.green_commit === null || row.green_gates === null
      ? undefined
      : { commit: row.green_commit as Sha, gates: row.green_gates },
  blocked: row.blocked === null ? undefined : (fromJson(row.blocked) as NonNullable<LandingQueue['blocked']>),
})
