import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. Points from before start with no watched time, so none of them expires early. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `create table watched_time (host text primary key, seen_at bigint not null, total bigint not null)`,
  `alter table restore_points add column watched_from bigint not null default 0`,
]
