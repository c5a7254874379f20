import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. An environment's snapshots are deleted when it is removed: looking for those of removed ones
 * at every run took a third of the server's time with 1,000 environments.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `delete from git_looks where environment_id is not null and environment_id not in
    (select id from environments where status not in ('removed', 'released'))`,
  'create index git_looks_environment on git_looks (environment_id)',
]
