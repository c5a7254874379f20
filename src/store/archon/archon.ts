/*
 * Archon's database, read only. In: a SQLite file or a PostgreSQL URL. Out: its rows as typed values.
 */
import { AppError } from '../../domain/errors.ts'
import type { ArchonDatabase, ArchonRow } from './database.ts'

/** The contents of an Archon database of any generation. Fields it has no column for are undefined. */
export type ArchonInstallation = {
  readonly codebases: readonly ArchonCodebase[]
  readonly conversations: readonly ArchonConversation[]
  readonly sessions: readonly ArchonSession[]
  /** Undefined if it has no such table: then the conversations name the worktrees. */
  readonly environments: readonly ArchonEnvironment[] | undefined
}

export type ArchonCodebase = {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly path: string | undefined
  readonly repositoryUrl: string | undefined
  readonly defaultBranch: string | undefined
  readonly assistant: string | undefined
  /** Files of commands it had loaded, relative to its directory. */
  readonly commandPaths: readonly string[]
  readonly createdAt: number | undefined
}

export type ArchonConversation = {
  readonly id: string | undefined
  readonly platform: string | undefined
  readonly conversationId: string | undefined
  readonly codebaseId: string | undefined
  /** The id of an environment's row, or a path in the previous generation. */
  readonly isolationEnvId: string | undefined
  readonly isolationEnvIdLegacy: string | undefined
  readonly worktreePath: string | undefined
  readonly isolationProvider: string | undefined
  readonly assistant: string | undefined
  /** Created by Archon for its own workers; no user writes there. */
  readonly hidden: boolean
  readonly deletedAt: number | undefined
  readonly status: string | undefined
  readonly lastActivityAt: number | undefined
  readonly updatedAt: number | undefined
  readonly createdAt: number | undefined
}

export type ArchonSession = {
  readonly id: string | undefined
  readonly conversationId: string | undefined
  readonly agent: string | undefined
  readonly agentSessionId: string | undefined
  readonly active: boolean
  readonly startedAt: number | undefined
}

export type ArchonEnvironment = {
  readonly id: string | undefined
  readonly codebaseId: string | undefined
  readonly workflowType: string | undefined
  readonly workflowId: string | undefined
  readonly provider: string | undefined
  readonly path: string | undefined
  readonly branch: string | undefined
  readonly status: string | undefined
  /** Raw JSON. */
  readonly metadata: string | undefined
  readonly createdByPlatform: string | undefined
  readonly createdAt: number | undefined
}

export type ArchonTarget = { readonly sqliteFile: string } | { readonly postgresUrl: string }

/**
 * Reads everything in one read-only snapshot. Columns are looked up, never assumed: they differ between generations.
 * `scratch` is a private directory for a copy, if SQLite needs one to read without leaving files behind.
 */
export const readArchon = async (target: ArchonTarget, scratch: string): Promise<ArchonInstallation> => {
  const database = await open(target, scratch)
  try {
    const read = await readTables(database)
    if (read.codebases === undefined && read.conversations === undefined) throw notArchon(target)
    return {
      codebases: inOrder((read.codebases ?? []).map(toCodebase)),
      conversations: inOrder((read.conversations ?? []).map(toConversation)),
      sessions: inOrder((read.sessions ?? []).map(toSession)),
      environments: read.environments && inOrder(read.environments.map(toEnvironment)),
    }
  } finally {
    await database.close()
  }
}

/**
 * Oldest first, whatever order the database returns: PostgreSQL's changes with every update. Sorted here, because each
 * engine compares text in its own way.
 */
const inOrder = <Row extends Dated>(rows: readonly Row[]): Row[] =>
  rows.toSorted((a, b) => timeOf(a) - timeOf(b) || compare(a.id ?? '', b.id ?? '') || compare(textOf(a), textOf(b)))

type Dated = {
  readonly id: string | undefined
  readonly createdAt?: number | undefined
  readonly startedAt?: number | undefined
}

const timeOf = ({ createdAt, startedAt }: Dated): number => createdAt ?? startedAt ?? 0
const textOf = (row: Dated): string => JSON.stringify(row)
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Loaded lazily, like the store's own engines. */
const open = async (target: ArchonTarget, scratch: string): Promise<ArchonDatabase> => {
  if ('sqliteFile' in target) {
    const { openArchonSqlite } = await import('./sqlite.ts')
    return openArchonSqlite(target.sqliteFile, scratch)
  }
  const { openArchonPostgres } = await import('./postgres.ts')
  return openArchonPostgres(target.postgresUrl)
}

/** Every column we read, of any generation; docs/import-archon.md lists which had which. */
const columnsRead = {
  codebases: [
    'id',
    'name',
    'repository_url',
    'default_cwd',
    'default_branch',
    'ai_assistant_type',
    'commands',
    'created_at',
  ],
  conversations: [
    'id',
    'platform_type',
    'platform_conversation_id',
    'codebase_id',
    'isolation_env_id',
    'isolation_env_id_legacy',
    'worktree_path',
    'isolation_provider',
    'ai_assistant_type',
    'hidden',
    'deleted_at',
    'status',
    'last_activity_at',
    'updated_at',
    'created_at',
  ],
  sessions: ['id', 'conversation_id', 'ai_assistant_type', 'assistant_session_id', 'active', 'started_at'],
  environments: [
    'id',
    'codebase_id',
    'workflow_type',
    'workflow_id',
    'provider',
    'working_path',
    'branch_name',
    'status',
    'metadata',
    'created_by_platform',
    'created_at',
  ],
} as const

const tableNames = {
  codebases: 'remote_agent_codebases',
  conversations: 'remote_agent_conversations',
  sessions: 'remote_agent_sessions',
  environments: 'remote_agent_isolation_environments',
} as const

type Table = keyof typeof columnsRead
type Read = { readonly [Name in Table]?: ArchonRow[] }

const readTables = async (database: ArchonDatabase): Promise<Read> => {
  const read: Partial<Record<Table, ArchonRow[]>> = {}
  for (const name of Object.keys(tableNames) as Table[]) {
    const existing = await database.columns(tableNames[name])
    const columns = columnsRead[name].filter((column) => existing.includes(column))
    if (columns.length > 0) read[name] = await database.rows(tableNames[name], columns)
  }
  return read
}

const notArchon = (target: ArchonTarget): AppError =>
  new AppError(
    'not-found',
    `${'sqliteFile' in target ? target.sqliteFile : 'that PostgreSQL database'} has none of Archon's tables`,
    { remedy: `pass the database that has the table ${tableNames.conversations}` },
  )

const toCodebase = (row: ArchonRow): ArchonCodebase => ({
  id: row['id'],
  name: row['name'],
  path: row['default_cwd'],
  repositoryUrl: row['repository_url'],
  defaultBranch: row['default_branch'],
  assistant: row['ai_assistant_type'],
  commandPaths: commandPaths(row['commands']),
  createdAt: archonTime(row['created_at']),
})

/** `{ "plan": { "path": ".claude/commands/plan.md" } }` */
const commandPaths = (json: string | undefined): string[] => {
  try {
    const commands: unknown = JSON.parse(json ?? '{}')
    return Object.values(commands ?? {}).flatMap((command: unknown) =>
      typeof command === 'object' && command !== null && 'path' in command && typeof command.path === 'string'
        ? [command.path]
        : [],
    )
  } catch {
    return []
  }
}

const toConversation = (row: ArchonRow): ArchonConversation => ({
  id: row['id'],
  platform: row['platform_type'],
  conversationId: row['platform_conversation_id'],
  codebaseId: row['codebase_id'],
  isolationEnvId: row['isolation_env_id'],
  isolationEnvIdLegacy: row['isolation_env_id_legacy'],
  worktreePath: row['worktree_path'],
  isolationProvider: row['isolation_provider'],
  assistant: row['ai_assistant_type'],
  hidden: isTrue(row['hidden']),
  deletedAt: archonTime(row['deleted_at']),
  status: row['status'],
  lastActivityAt: archonTime(row['last_activity_at']),
  updatedAt: archonTime(row['updated_at']),
  createdAt: archonTime(row['created_at']),
})

const toSession = (row: ArchonRow): ArchonSession => ({
  id: row['id'],
  conversationId: row['conversation_id'],
  agent: row['ai_assistant_type'],
  agentSessionId: row['assistant_session_id'],
  active: isTrue(row['active']),
  startedAt: archonTime(row['started_at']),
})

const toEnvironment = (row: ArchonRow): ArchonEnvironment => ({
  id: row['id'],
  codebaseId: row['codebase_id'],
  workflowType: row['workflow_type'],
  workflowId: row['workflow_id'],
  provider: row['provider'],
  path: row['working_path'],
  branch: row['branch_name'],
  status: row['status'],
  metadata: row['metadata'],
  createdByPlatform: row['created_by_platform'],
  createdAt: archonTime(row['created_at']),
})

/** SQLite has 1, PostgreSQL t. */
const isTrue = (text: string | undefined): boolean => text === '1' || text === 't' || text === 'true'

/**
 * `2026-01-02 03:04:05`, with or without fractions and zone. Without a zone it is UTC: so is SQLite's datetime(), and
 * so is the old tables' `timestamp default now()` on a server in UTC, as in a container.
 */
export const archonTime = (text: string | undefined): number | undefined => {
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d+)?(?:(Z)|([+-]\d{2})(?::?(\d{2}))?)?$/.exec(
    text ?? '',
  )
  if (match === null) return undefined
  const [, date, time, fraction = '', , hours, minutes = '00'] = match
  const zone = hours === undefined ? 'Z' : `${hours}:${minutes}`
  const at = Date.parse(`${date}T${time}${fraction.slice(0, 4)}${zone}`)
  return Number.isNaN(at) ? undefined : at
}
