import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. What the patrol remembers from one round to the next, whichever process runs them. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  await sql
    .raw(
      `create table patrol_notes (
        host text not null, subject text not null, what text not null, life text not null,
        first_seen bigint not null, last_seen bigint not null, times bigint not null, reported_at bigint,
        data text not null, primary key (host, subject, what))`,
    )
    .execute(transaction)
}
