import { randomUUID } from 'node:crypto'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { Client } from 'pg'

/** The generations of Archon's schema, by what each brought. */
export const generations = [
  'initial',
  'worktree-path',
  'text-id',
  'legacy-id',
  'environments',
  'soft-delete',
  'latest',
] as const
export type Generation = (typeof generations)[number]

type Value = string | number | boolean | null
export type ArchonFixture = {
  /** What the command line is given. */
  readonly address: string
  insert(table: ArchonTable, values: Record<string, Value>): Promise<string>
  exec(sql: string): Promise<void>
  /** All rows of all four tables. */
  dump(): Promise<string>
  close(): Promise<void>
}
export type ArchonTable = 'codebases' | 'conversations' | 'sessions' | 'isolation_environments'

/** `wal`, as Archon's own adapter opens it, unless another journal mode is asked for. */
export const archonOnSqlite = async (file: string, generation: Generation, journal = 'wal'): Promise<ArchonFixture> => {
  const database = new DatabaseSync(file)
  database.exec(`pragma journal_mode = ${journal}`)
  const types = {
    id: 'text primary key',
    ref: 'text',
    text: 'text',
    time: "text default (datetime('now'))",
    zoned: "text default (datetime('now'))",
    bool: 'integer',
    json: "text default '{}'",
  }
  database.exec(schemaOf(generation, types))
  return fixture(generation, file, {
    run: async (sql, values) => void database.prepare(sql).run(...values.map(toSqlite)),
    all: async (sql) => database.prepare(sql).all(),
    exec: async (sql) => database.exec(sql),
    parameter: () => '?',
    close: async () => database.close(),
  })
}

export const archonOnPostgres = async (url: string, generation: Generation): Promise<ArchonFixture> => {
  const client = new Client(url)
  await client.connect()
  const types = {
    id: 'uuid primary key default gen_random_uuid()',
    ref: 'uuid',
    text: 'varchar(500)',
    time: 'timestamp default now()',
    zoned: 'timestamptz default now()',
    bool: 'boolean',
    json: "jsonb default '{}'",
  }
  await client.query(schemaOf(generation, types))
  return fixture(generation, url, {
    run: async (sql, values) => void (await client.query(sql, values)),
    all: async (sql) => (await client.query<Record<string, unknown>>(sql)).rows,
    exec: async (sql) => void (await client.query(sql)),
    parameter: (n) => `$${n}`,
    close: () => client.end(),
  })
}

let inserted = 0

const toSqlite = (value: Value): SQLInputValue => (typeof value === 'boolean' ? Number(value) : value)

type Connection = {
  run(sql: string, values: Value[]): Promise<void>
  all(sql: string): Promise<Record<string, unknown>[]>
  exec(sql: string): Promise<void>
  parameter(n: number): string
  close(): Promise<void>
}

const fixture = (generation: Generation, address: string, connection: Connection): ArchonFixture => ({
  address,
  insert: async (table, given) => {
    // In the order in which they are inserted, like their times.
    const id = `${(++inserted).toString(16).padStart(8, '0')}${randomUUID().slice(8)}`
    const values = 'id' in given ? given : { ...given, id }
    const names = Object.keys(values)
    const places = names.map((_, i) => connection.parameter(i + 1))
    await connection.run(
      `insert into remote_agent_${table} (${names.join(', ')}) values (${places.join(', ')})`,
      Object.values(values),
    )
    return String(values['id'] ?? '')
  },
  exec: (sql) => connection.exec(sql),
  dump: async () => {
    const tables = ['codebases', 'conversations', 'sessions']
    if (hasEnvironments(generation)) tables.push('isolation_environments')
    const rows: unknown[] = []
    for (const table of tables) rows.push(await connection.all(`select * from remote_agent_${table}`))
    return JSON.stringify(rows)
  },
  close: () => connection.close(),
})

type Types = { id: string; ref: string; text: string; time: string; zoned: string; bool: string; json: string }

const isAtLeast = (generation: Generation, other: Generation): boolean =>
  generations.indexOf(generation) >= generations.indexOf(other)

export const hasEnvironments = (generation: Generation): boolean => isAtLeast(generation, 'legacy-id')

/** The tables as that generation's migrations left them, with the columns that matter. */
const schemaOf = (generation: Generation, { id, ref, text, time, zoned, bool, json }: Types): string => {
  const from = (first: Generation, columns: string): string => (isAtLeast(generation, first) ? columns : '')
  const isolation: Record<Generation, string> = {
    initial: '',
    'worktree-path': `worktree_path ${text},`,
    'text-id': `worktree_path ${text}, isolation_env_id ${text}, isolation_provider ${text} default 'worktree',`,
    'legacy-id': `worktree_path ${text}, isolation_env_id_legacy ${text}, isolation_env_id ${ref},
      isolation_provider ${text} default 'worktree',`,
    environments: `isolation_env_id ${ref},`,
    'soft-delete': `isolation_env_id ${ref},`,
    latest: `isolation_env_id ${ref},`,
  }
  const unique = 'codebase_id, workflow_type, workflow_id'
  const environments = `
    create table remote_agent_isolation_environments (
      id ${id}, codebase_id ${ref} not null, workflow_type text not null, workflow_id text not null,
      provider text not null default 'worktree', working_path text not null, branch_name text not null,
      status text not null default 'active', created_at ${zoned}, created_by_platform text, metadata ${json}
      ${from('latest', `, created_by_user_id ${ref}`)}
      ${isAtLeast(generation, 'soft-delete') ? '' : `, unique (${unique})`});
    ${from('soft-delete', `create unique index unique_active on remote_agent_isolation_environments (${unique}) where status = 'active';`)}`
  return `
    create table remote_agent_codebases (
      id ${id}, name ${text} not null, repository_url ${text}, default_cwd ${text} not null,
      ${from('latest', `default_branch ${text}, kind text not null default 'repo',`)}
      ai_assistant_type ${text} default 'claude', commands ${json}, created_at ${time}, updated_at ${time});
    create table remote_agent_conversations (
      id ${id}, platform_type ${text} not null, platform_conversation_id ${text} not null, codebase_id ${ref},
      cwd ${text}, ai_assistant_type ${text} default 'claude', ${isolation[generation]}
      ${from('legacy-id', `last_activity_at ${zoned},`)}
      ${from('soft-delete', `title ${text}, deleted_at ${zoned.split(' ')[0]}, hidden ${bool},`)}
      ${from('latest', `user_id ${ref},`)}
      created_at ${time}, updated_at ${time}, unique (platform_type, platform_conversation_id));
    create table remote_agent_sessions (
      id ${id}, conversation_id ${ref}, codebase_id ${ref}, ai_assistant_type ${text} not null,
      assistant_session_id ${text}, active ${bool}, metadata ${json}, started_at ${time}, ended_at ${time.split(' ')[0]}
      ${from('soft-delete', `, parent_session_id ${ref}, transition_reason text, ended_reason text`)});
    create table remote_agent_messages (anything ${text});
    ${hasEnvironments(generation) ? environments : ''}`
}
