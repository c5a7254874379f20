import type { Kysely } from 'kysely'
import type { Tables } from '../tables.ts'

/** What a platform keeps over a restart, such as the last message it has seen. */
export type PlatformMemoryStore = {
  get(platform: string, key: string): Promise<string | undefined>
  set(platform: string, key: string, value: string, at: number): Promise<void>
  /** Sets it unless it was set at or after `since`; says whether it did. For things to do once in a while. */
  setIfOlder(platform: string, key: string, value: string, at: number, since: number): Promise<boolean>
  deleteBefore(at: number): Promise<void>
}

export const platformMemoryStore = (db: Kysely<Tables>): PlatformMemoryStore => {
  const insert = (platform: string, key: string, value: string, at: number) =>
    db.insertInto('platform_memory').values({ platform, key, value, updated_at: at })
  return {
    get: async (platform, key) => {
      const row = await db
        .selectFrom('platform_memory')
        .select('value')
        .where('platform', '=', platform)
        .where('key', '=', key)
        .executeTakeFirst()
      return row?.value
    },
    set: async (platform, key, value, at) => {
      await insert(platform, key, value, at)
        .onConflict((conflict) => conflict.columns(['platform', 'key']).doUpdateSet({ value, updated_at: at }))
        .execute()
    },
    setIfOlder: async (platform, key, value, at, since) => {
      const row = await insert(platform, key, value, at)
        .onConflict((conflict) =>
          conflict
            .columns(['platform', 'key'])
            .doUpdateSet({ value, updated_at: at })
            .where('platform_memory.updated_at', '<', since),
        )
        .returning('key')
        .executeTakeFirst()
      return row !== undefined
    },
    deleteBefore: async (at) => {
      await db.deleteFrom('platform_memory').where('updated_at', '<', at).execute()
    },
  }
}
