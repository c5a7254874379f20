import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. What the reflog said when somebody vouched wasn't recorded before, so somebody has to vouch
 * again.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table environments add column vouched_log text`,
  `alter table environments add column removed_tip text`,
  `update environments set trust = 'lapsed', vouched_sha = null where trust = 'vouched'`,
]
