import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. An environment that a persistent chat made, or works in now, is its user's own. Which others
 * it has worked in wasn't recorded before.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `create table merged_pull_requests (
    codebase_id text not null references codebases (id) on delete cascade, forge text not null,
    repository text not null, number integer not null, head_sha text not null, merge_commit text not null,
    base_branch text not null, learned_at bigint not null,
    primary key (codebase_id, head_sha, repository, number))`,
  `alter table environments add column persistent integer not null default 0`,
  `update environments set persistent = 1 where exists (
    select 1 from conversations where conversations.persistent = 1 and (
      conversations.environment_id = environments.id or environments.created_by = conversations.platform
      or environments.created_by like conversations.platform || ':%'))`,
]
