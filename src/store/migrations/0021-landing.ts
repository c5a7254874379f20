import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

const statements: readonly string[] = [
  `alter table landings add column base_branch text`,
  `alter table landings add column merge_commit text`,
  `alter table landings add column why text`,
  `alter table landings add column todo text`,
  `create index landings_item on landings (item_id)`,
  `create index landings_todo on landings (codebase_id) where todo is not null`,
  `create table landing_queues (
    codebase_id text primary key references codebases (id) on delete cascade,
    holder_host text, holder_pid bigint, holder_start_time text,
    push text, green_commit text, green_gates text, blocked text)`,
]
