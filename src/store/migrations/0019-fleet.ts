import { sql, type Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Ids of items and landings come from `counters`, not from the engine: items that are
 * recovered after the database was lost keep theirs.
 */
export const up = async (transaction: Transaction<Tables>, engine: Engine): Promise<void> => {
  for (const statement of statements(engine)) await sql.raw(statement).execute(transaction)
}

const statements = (engine: Engine): readonly string[] => [
  `create table counters (name text primary key, next bigint not null)`,
  `insert into counters (name, next) values ('items', 1), ('landings', 1)`,
  `create table items (
    id bigint primary key, codebase_id text not null references codebases (id) on delete cascade,
    title text not null, body text not null, priority integer not null, state text not null,
    environment_id text references environments (id) on delete set null, source text, source_key text, parked text,
    pull_request text, created_by text not null, created_at bigint not null, updated_at bigint not null,
    check (state in ('open', 'hooked', 'in_review', 'parked', 'landed', 'closed')),
    check (priority between 0 and 4))`,
  `create index items_state on items (state, priority, created_at)`,
  `create index items_codebase on items (codebase_id, state)`,
  `create index items_environment on items (environment_id)`,
  `create unique index items_source on items (codebase_id, source_key)`,
  `create table item_dependencies (
    item_id bigint not null references items (id) on delete cascade,
    after_id bigint not null references items (id) on delete cascade, primary key (item_id, after_id))`,
  `create index item_dependencies_after on item_dependencies (after_id)`,
  `create table item_history (
    seq ${engine.countingKey}, item_id bigint not null references items (id) on delete cascade,
    at bigint not null, by text not null, change text not null)`,
  `create index item_history_item on item_history (item_id, seq)`,
  `create table item_followers (
    item_id bigint not null references items (id) on delete cascade,
    conversation text not null references conversations (id) on delete cascade, since bigint not null,
    primary key (item_id, conversation))`,
  // Without a reference to its environment on purpose: whatever happens to that row, the agent must not be forgotten.
  `create table agents (
    id text primary key, host text not null, name text not null, kind text not null, pool text,
    codebase_id text not null references codebases (id) on delete cascade, program text not null, state text not null,
    item_id bigint references items (id), environment_id text, spawn text not null, session text,
    restarts integer not null, last_sign_at bigint not null, worked_at bigint, draining_since bigint,
    holder_pid bigint not null, holder_start_time text not null, created_at bigint not null, ended_at bigint,
    check (kind in ('worker', 'crew')),
    check (state in ('spawning', 'working', 'finishing', 'stuck', 'draining', 'stopped', 'crashed', 'gone')),
    check (state <> 'gone' or item_id is null))`,
  `create unique index agents_name on agents (host, name) where state <> 'gone'`,
  // An item is in one hand.
  `create unique index agents_item on agents (item_id) where item_id is not null`,
  `create index agents_environment on agents (environment_id)`,
  `create index agents_codebase on agents (codebase_id)`,
  `create table formula_runs (
    id text primary key, agent_id text not null references agents (id) on delete cascade, item_id bigint,
    formula text not null, steps text not null, state text not null, branch text not null, sha text,
    pull_request text, close integer not null, holder_host text, holder_pid bigint, holder_start_time text,
    waiter_pid bigint, waiter_start_time text, created_at bigint not null, updated_at bigint not null,
    check (state in ('running', 'done', 'refused')))`,
  `create unique index formula_runs_running on formula_runs (agent_id) where state = 'running'`,
  `create index formula_runs_item on formula_runs (item_id, created_at)`,
  `create table landings (
    id bigint primary key, codebase_id text not null references codebases (id) on delete cascade, item_id bigint,
    branch text not null, sha text not null, state text not null, landed_sha text, attempts integer not null,
    gate text, created_by text not null, created_at bigint not null, updated_at bigint not null,
    check (state in ('queued', 'testing', 'landed', 'refused', 'superseded')))`,
  `create index landings_codebase on landings (codebase_id, state, id)`,
  `create unique index landings_open on landings (codebase_id, branch) where state in ('queued', 'testing')`,
  // An approval of the commands in formulas and of the gates, beside the one of setup and teardown.
  `alter table codebases add column trusted_checks text`,
  `create table fleet_control (host text primary key, state text not null, why text not null, since bigint not null)`,
]
