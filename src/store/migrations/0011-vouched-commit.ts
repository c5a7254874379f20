import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. Which commit was vouched for wasn't recorded before, so somebody has to vouch again. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table environments add column vouched_sha text`,
  `update environments set trust = 'lapsed' where trust = 'vouched'`,
]
