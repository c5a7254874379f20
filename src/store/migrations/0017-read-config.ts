import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. The repository's own settings, as read at a commit: they are needed by every command. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table codebases add column config_commit text`,
  `alter table codebases add column config_text text`,
]
