import { sql, type Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. One text for both engines: SQLite reads `bigint` as an integer.
 *
 * Foreign keys stand only where the row is nothing without the other. Without one on purpose: events and restore
 * points outlive environment and codebase (a restore point still has files on disk to be found and cleared), journal
 * entries may come before the row they speak of. A spare keeps its codebase from going, as it is a directory on disk.
 */
export const up = async (transaction: Transaction<Tables>, engine: Engine): Promise<void> => {
  for (const statement of [...tables(engine), ...indexes]) await sql.raw(statement).execute(transaction)
}

const tables = (engine: Engine): string[] => [
  `create table codebases (
    id text primary key, host text not null, name text not null, repo_path text not null, checkout_path text,
    remote text, remote_url text, base_branch text, github text, default_agent text, cloned integer not null,
    trusted_config text, fetched_at bigint, created_at bigint not null)`,
  `create table environments (
    id text primary key, host text not null, codebase_id text not null references codebases (id) on delete cascade,
    work_type text not null, work_id text not null, provider text not null, path text not null, branch text not null,
    branch_origin text not null, status text not null, owned integer not null, created_by text not null,
    created_at bigint not null, last_activity_at bigint not null, start_sha text, admin_name text, base_branch text,
    is_fork integer not null, pr_number bigint, pr_branch text,
    check (status in ('creating', 'active', 'removing', 'removed', 'missing', 'released')))`,
  `create table environment_aliases (
    environment_id text not null references environments (id) on delete cascade, codebase_id text not null,
    work_type text not null, work_id text not null, created_at bigint not null,
    primary key (codebase_id, work_type, work_id))`,
  `create table conversations (
    id text primary key, platform text not null, conversation_id text not null,
    codebase_id text references codebases (id) on delete set null,
    environment_id text references environments (id) on delete set null,
    persistent integer not null, last_activity_at bigint not null, closed_at bigint, created_at bigint not null,
    unique (platform, conversation_id))`,
  `create table restore_points (
    id text primary key, host text not null, codebase_id text not null, environment_id text not null,
    created_at bigint not null, expires_at bigint not null, ref text not null, commit_sha text not null,
    contents text not null)`,
  `create table leases (
    id text primary key, host text not null,
    environment_id text not null references environments (id) on delete cascade, purpose text not null,
    holder_pid bigint not null, holder_start_time text not null, created_at bigint not null)`,
  `create table journal (
    id text primary key, host text not null, codebase_id text, environment_id text, kind text not null,
    step text not null, data text not null, holder_pid bigint not null, holder_start_time text not null,
    child_pid bigint, child_start_time text, started_at bigint not null)`,
  `create table spares (
    id text primary key, host text not null, codebase_id text not null references codebases (id),
    path text not null, admin_name text not null, sha text not null, created_at bigint not null,
    unique (host, path))`,
  `create table ports (
    host text not null, port integer not null,
    environment_id text not null references environments (id) on delete cascade, name text not null,
    created_at bigint not null, primary key (host, port))`,
  `create table merge_answers (
    codebase_id text not null references codebases (id) on delete cascade, base text not null, tip text not null,
    start_sha text not null, answer text not null, created_at bigint not null,
    primary key (codebase_id, base, tip, start_sha))`,
  `create table events (
    seq ${engine.countingKey}, id text not null unique, at bigint not null, kind text not null, codebase_id text,
    environment_id text, data text not null)`,
]

const live = `where status in ('creating', 'active', 'removing', 'missing')`

const indexes: readonly string[] = [
  `create unique index codebases_name on codebases (host, name)`,
  `create unique index codebases_repo_path on codebases (host, repo_path)`,
  // Among what is live only, so that a work can be taken up again after its environment went.
  `create unique index environments_live_work on environments (codebase_id, work_type, work_id) ${live}`,
  `create unique index environments_live_branch on environments (codebase_id, branch) ${live}`,
  `create unique index environments_live_path on environments (host, path) ${live}`,
  `create index environments_work on environments (codebase_id, work_type, work_id, created_at)`,
  `create index environments_branch on environments (codebase_id, branch, created_at)`,
  `create index environments_path on environments (codebase_id, path, created_at)`,
  `create index environment_aliases_environment on environment_aliases (environment_id)`,
  `create index conversations_environment on conversations (environment_id)`,
  `create index conversations_codebase on conversations (codebase_id)`,
  `create index restore_points_codebase on restore_points (codebase_id, created_at)`,
  `create index restore_points_environment on restore_points (environment_id, created_at)`,
  `create index restore_points_expiry on restore_points (host, expires_at)`,
  `create index leases_environment on leases (environment_id)`,
  `create index leases_host on leases (host)`,
  `create index journal_host on journal (host, codebase_id)`,
  `create index spares_codebase on spares (codebase_id, created_at)`,
  `create index ports_environment on ports (environment_id)`,
  `create index events_at on events (at)`,
  `create index events_kind on events (kind, at)`,
  `create index events_codebase on events (codebase_id, at)`,
]
