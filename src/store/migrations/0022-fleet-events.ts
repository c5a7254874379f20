import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Only the fleet's events have a number; reports of cleanup have none. The number comes from
 * `counters`: an identity column's would be visible out of order, so a reader could miss one.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `insert into counters (name, next) values ('events', 1)`,
  `alter table events add column number bigint`,
  `alter table events add column item_id bigint`,
  `create unique index events_number on events (number)`,
  `create index events_item on events (item_id, number) where item_id is not null`,
  `create table hooks (
    host text not null, key text not null, position bigint not null, attempts integer not null,
    next_attempt_at bigint not null, failed_at bigint, error text, holder_pid bigint, holder_start_time text,
    primary key (host, key))`,
]
