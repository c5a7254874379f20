import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
}

// A watch outlives its codebase: what the run left may still be alive, and its cgroup is to be removed.
const statements: readonly string[] = [
  `create table run_watches (
    id text primary key, host text not null, codebase_id text not null,
    platform text not null, conversation_id text not null, owner_pid bigint not null, owner_start_time text not null,
    ended integer not null, data text not null)`,
  `create table git_looks (
    host text not null, scope text not null, codebase_id text not null references codebases (id) on delete cascade,
    environment_id text, look text not null, at bigint not null, primary key (host, scope))`,
  'create index git_looks_codebase on git_looks (codebase_id)',
]
