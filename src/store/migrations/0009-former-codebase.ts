import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Earlier versions forgot which codebase a conversation had when that was unregistered: one
 * that has had a session had one, under a name that is not known any more.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table conversations add column former_codebase_id text`,
  `alter table conversations add column former_codebase_name text`,
  `update conversations set former_codebase_id = 'unknown', former_codebase_name = '' where codebase_id is null
    and exists (select 1 from sessions where sessions.conversation = conversations.id)`,
]
