import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. `actions` are a reply's buttons; `platform_memory` is what a platform keeps over a restart. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table outbox add column actions text`,
  `create table platform_memory (
    platform text not null, key text not null, value text not null, updated_at bigint not null,
    primary key (platform, key))`,
]
