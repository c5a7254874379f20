import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** A longer gap between two looks may be a clock jump. */
const maxStepMs = 24 * 60 * 60 * 1000

/**
 * How much time has certainly passed on this host: the sum of the gaps between looks, each at most a day, and 0 if the
 * clock went back. Even with a wrong clock, one look never adds more than a day.
 */
export const watchTime = async (db: Kysely<Tables>, host: string, now: number): Promise<void> => {
  await db
    .insertInto('watched_time')
    .values({ host, seen_at: now, total: 0 })
    .onConflict((conflict) =>
      conflict.column('host').doUpdateSet((eb) => {
        const seenAt = eb.ref('watched_time.seen_at')
        const step = sql<number>`case when ${seenAt} > ${now} then 0
          when ${now} - ${seenAt} > ${maxStepMs} then ${maxStepMs} else ${now} - ${seenAt} end`
        return { seen_at: now, total: sql<number>`watched_time.total + ${step}` }
      }),
    )
    .execute()
}

export const watchedTime = async (db: Kysely<Tables>, host: string): Promise<number> => {
  const row = await db.selectFrom('watched_time').select('total').where('host', '=', host).executeTakeFirst()
  return row?.total ?? 0
}
