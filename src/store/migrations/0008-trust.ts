import { sql, type Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Earlier versions took pull requests of unknown origin and adopted worktrees for the
 * repository's own: those have to be proven or vouched for anew. Links that a fork named are dropped.
 */
export const up = async (transaction: Transaction<Tables>, _engine: Engine): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table environments add column trust text not null default 'unproven'`,
  `update environments set trust = 'own' where is_fork = 0 and owned = 1 and branch not like 'pr-%-review'`,
  `delete from environment_aliases where work_type not in ('pr', 'review') and environment_id in
    (select id from environments where is_fork = 1)`,
  `alter table environments drop column is_fork`,
]
