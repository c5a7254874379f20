import type { Kysely } from 'kysely'
import type { Tables } from '../tables.ts'
import type { HookPatch, HookState, HookStore } from './store.ts'
import type { HookRow } from './tables.ts'

export const hookStore = (db: Kysely<Tables>): HookStore => {
  const change = (host: string, key: string, expected: HookState['holder']) => {
    const hook = db.updateTable('hooks').where('host', '=', host).where('key', '=', key)
    return expected === undefined
      ? hook.where('holder_pid', 'is', null)
      : hook.where('holder_pid', '=', expected.pid).where('holder_start_time', '=', expected.startTime)
  }
  return {
    ensure: async (host, key, position) => {
      await db
        .insertInto('hooks')
        .values({ host, key, position, ...unused })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      const hook = db.selectFrom('hooks').selectAll().where('host', '=', host).where('key', '=', key)
      return fromRow(await hook.executeTakeFirstOrThrow())
    },
    list: async (host) =>
      (await db.selectFrom('hooks').selectAll().where('host', '=', host).orderBy('key').execute()).map(fromRow),
    claim: async (host, key, expected, holder) => {
      const columns = { holder_pid: holder?.pid ?? null, holder_start_time: holder?.startTime ?? null }
      return (await change(host, key, expected).set(columns).executeTakeFirst()).numUpdatedRows === 1n
    },
    update: async (host, key, holder, patch) =>
      (await change(host, key, holder).set(columnsOf(patch)).executeTakeFirst()).numUpdatedRows === 1n,
    keepOnly: async (host, keys) => {
      const ours = db.deleteFrom('hooks').where('host', '=', host)
      await (keys.length === 0 ? ours : ours.where('key', 'not in', keys)).execute()
    },
  }
}

const unused = {
  attempts: 0,
  next_attempt_at: 0,
  failed_at: null,
  error: null,
  holder_pid: null,
  holder_start_time: null,
}

const columnsOf = (patch: HookPatch): Partial<HookRow> => ({
  ...(patch.position !== undefined && { position: patch.position }),
  ...(patch.attempts !== undefined && { attempts: patch.attempts }),
  ...(patch.nextAttemptAt !== undefined && { next_attempt_at: patch.nextAttemptAt }),
  ...('failure' in patch && { failed_at: patch.failure?.at ?? null, error: patch.failure?.error ?? null }),
})

const fromRow = (row: HookRow): HookState => ({
  key: row.key,
  position: row.position,
  attempts: row.attempts,
  nextAttemptAt: row.next_attempt_at,
  failure: row.failed_at === null || row.error === null ? undefined : { at: row.failed_at, error: row.error },
  holder:
    row.holder_pid === null || row.holder_start_time === null
      ? undefined
      : { pid: row.holder_pid, startTime: row.holder_start_time },
})
