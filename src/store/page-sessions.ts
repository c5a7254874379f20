import type { Kysely } from 'kysely'
import { inTransaction } from './engine.ts'
import type { Tables } from './tables.ts'

/** Sign-ins to the page. */
export type PageSessionStore = {
  /** Keeps the newest `limit`, and deletes expired ones. */
  begin(session: PageSession, limit: number): Promise<void>
  isLive(id: string, now: number): Promise<boolean>
  end(id: string): Promise<void>
  endAll(): Promise<void>
}

export type PageSession = { readonly id: string; readonly createdAt: number; readonly expiresAt: number }

export const pageSessionStore = (db: Kysely<Tables>): PageSessionStore => ({
  begin: ({ id, createdAt, expiresAt }, limit) =>
    inTransaction(db, async (transaction) => {
      await transaction
        .insertInto('page_sessions')
        .values({ id, created_at: createdAt, expires_at: expiresAt })
        .execute()
      const newest = transaction
        .selectFrom('page_sessions')
        .select('id')
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .limit(limit)
      await transaction
        .deleteFrom('page_sessions')
        .where((eb) => eb.or([eb('expires_at', '<=', createdAt), eb('id', 'not in', newest)]))
        .execute()
    }),
  isLive: async (id, now) => {
    const row = await db
      .selectFrom('page_sessions')
      .select('id')
      .where('id', '=', id)
      .where('expires_at', '>', now)
      .executeTakeFirst()
    return row !== undefined
  },
  end: async (id) => {
    await db.deleteFrom('page_sessions').where('id', '=', id).execute()
  },
  endAll: async () => {
    await db.deleteFrom('page_sessions').execute()
  },
})
