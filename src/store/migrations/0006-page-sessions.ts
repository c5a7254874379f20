import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. A row is worth nothing without the token of its server, which signs the cookie. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  await sql
    .raw(`create table page_sessions (id text primary key, created_at bigint not null, expires_at bigint not null)`)
    .execute(transaction)
}
