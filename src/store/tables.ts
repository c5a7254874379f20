import type { Generated } from 'kysely'
import type { FleetTables } from './fleet/tables.ts'

/**
 * The tables as Kysely sees them. Both engines store the same: booleans as 0 or 1, times as integer milliseconds, JSON
 * as text, `undefined` as `null`; `rows.ts` converts.
 */
export type Tables = FleetTables & {
  codebases: CodebaseRow
  environments: EnvironmentRow
  environment_aliases: AliasRow
  conversations: ConversationRow
  told: ToldRow
  sessions: SessionRow
  inbox: InboxRow
  outbox: OutboxRow
  platform_memory: PlatformMemoryRow
  restore_points: RestorePointRow
  watched_time: WatchedTimeRow
  leases: LeaseRow
  journal: JournalRow
  spares: SpareRow
  ports: PortRow
  page_sessions: PageSessionRow
  merge_answers: MergeAnswerRow
  merged_pull_requests: MergedPullRequestRow
  usage: UsageTableRow
  budget_raises: BudgetRaiseRow
  paused_messages: PausedMessageRow
  run_watches: RunWatchRow
  git_looks: GitLookTableRow
  migrations: MigrationRow
}

export type CodebaseRow = {
  id: string
  host: string
  name: string
  repo_path: string
  checkout_path: string | null
  repo_inode: string | null
  remote: string | null
  remote_url: string | null
  base_branch: string | null
  github: string | null
  default_agent: string | null
  cloned: number
  trusted_config: string | null
  trusted_checks: string | null
  config_commit: string | null
  config_text: string | null
  fetched_at: number | null
  base: string | null
  created_at: number
}

export type EnvironmentRow = {
  id: string
  host: string
  codebase_id: string
  work_type: string
  work_id: string
  provider: string
  path: string
  branch: string
  branch_origin: string
  status: string
  owned: number
  created_by: string
  created_at: number
  last_activity_at: number
  start_sha: string | null
  admin_name: string | null
  base_branch: string | null
  trust: string
  vouched_sha: string | null
  vouched_log: string | null
  removed_tip: string | null
  pr_number: number | null
  pr_branch: string | null
  persistent: number
}

export type AliasRow = {
  environment_id: string
  codebase_id: string
  work_type: string
  work_id: string
  created_at: number
}

export type ConversationRow = {
  id: string
  platform: string
  conversation_id: string
  codebase_id: string | null
  former_codebase_id: string | null
  former_codebase_name: string | null
  environment_id: string | null
  persistent: number
  agent: string | null
  imported_as: string | null
  last_activity_at: number
  closed_at: number | null
  created_at: number
  work_type: string | null
  work_id: string | null
}

export type ToldRow = { conversation: string; notice: string; told_at: number }

export type SessionRow = {
  id: string
  conversation: string
  agent: string
  agent_session_id: string | null
  directory: string
  started_at: number
  last_used_at: number
  ended_at: number | null
  end_reason: string | null
}

export type InboxRow = {
  /** Auto-increment: the order of acceptance. */
  seq: Generated<number>
  id: string
  platform: string
  conversation_id: string
  delivery_id: string
  kind: string
  text: string
  details: string
  lane: string
  state: string
  /** 1 if it is first in its queue. */
  ready: number
  accepted_at: number
  attempts: number
  put_backs: number
  holder_host: string | null
  holder_pid: number | null
  holder_start_time: string | null
  child_pid: number | null
  child_start_time: string | null
}

export type OutboxRow = {
  /** Auto-increment: the order of delivery. */
  seq: Generated<number>
  id: string
  platform: string
  conversation_id: string
  inbox_id: string | null
  key: string
  role: string
  text: string
  state: string
  attempts: number
  sent_parts: number
  next_attempt_at: number
  created_at: number
  sent_at: number | null
  error: string | null
  /** JSON. */
  actions: string | null
}

export type PlatformMemoryRow = {
  platform: string
  key: string
  value: string
  updated_at: number
}

export type RestorePointRow = {
  id: string
  host: string
  codebase_id: string
  environment_id: string
  created_at: number
  expires_at: number
  ref: string
  commit_sha: string
  contents: string
  /** The host's `watched_time.total` at insert. */
  watched_from: number
}

export type WatchedTimeRow = { host: string; seen_at: number; total: number }

export type LeaseRow = {
  id: string
  host: string
  environment_id: string
  purpose: string
  holder_pid: number
  holder_start_time: string
  created_at: number
}

export type JournalRow = {
  id: string
  host: string
  codebase_id: string | null
  environment_id: string | null
  kind: string
  step: string
  data: string
  holder_pid: number
  holder_start_time: string
  child_pid: number | null
  child_start_time: string | null
  started_at: number
}

export type SpareRow = {
  id: string
  host: string
  codebase_id: string
  path: string
  admin_name: string
  sha: string
  created_at: number
}

export type PageSessionRow = { id: string; created_at: number; expires_at: number }

export type PortRow = {
  host: string
  port: number
  environment_id: string
  name: string
  created_at: number
}

export type MergedPullRequestRow = {
  codebase_id: string
  forge: string
  repository: string
  number: number
  head_sha: string
  merge_commit: string
  base_branch: string
  learned_at: number
}

export type MergeAnswerRow = {
  codebase_id: string
  base: string
  tip: string
  /** Empty if unknown: a null would allow duplicates. */
  start_sha: string
  answer: string
  created_at: number
}

export type UsageTableRow = {
  id: string
  conversation: string
  agent: string
  cost_micros: number | null
  input_tokens: number | null
  output_tokens: number | null
  turns: number
  at: number
}

export type BudgetRaiseRow = {
  id: string
  conversation: string
  micros: number
  turns: number
  at: number
}

export type PausedMessageRow = {
  /** Auto-increment: the order in which they run. */
  seq: Generated<number>
  inbox_id: string
  conversation: string
  text: string
  details: string
  at: number
}

export type RunWatchRow = {
  id: string
  host: string
  codebase_id: string
  platform: string
  conversation_id: string
  owner_pid: number
  owner_start_time: string
  ended: number
  data: string
}

export type GitLookTableRow = {
  host: string
  scope: string
  codebase_id: string
  environment_id: string | null
  look: string
  at: number
}

export type MigrationRow = {
  number: number
  name: string
}
