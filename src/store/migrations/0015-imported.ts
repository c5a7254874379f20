import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. What an import from another tool brings: a repository's base, and IDs in another form. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table codebases add column base text`,
  `alter table conversations add column imported_as text`,
  `create index conversations_imported on conversations (platform, imported_as) where imported_as is not null`,
]
