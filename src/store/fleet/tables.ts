import type { Generated } from 'kysely'

/** The fleet's tables, as in `../tables.ts`. */
export type FleetTables = {
  events: EventTableRow
  counters: CounterRow
  items: ItemRow
  item_dependencies: ItemDependencyRow
  item_history: ItemHistoryRow
  item_followers: ItemFollowerRow
  agents: FleetAgentRow
  formula_runs: FormulaRunRow
  landings: LandingRow
  landing_queues: LandingQueueRow
  fleet_control: FleetControlRow
  patrol_notes: PatrolNoteRow
  hooks: HookRow
}

export type CounterRow = { name: string; next: number }

export type ItemRow = {
  id: number
  codebase_id: string
  title: string
  body: string
  priority: number
  state: string
  environment_id: string | null
  /** JSON. */
  source: string | null
  source_key: string | null
  /** JSON. */
  parked: string | null
  pull_request: string | null
  created_by: string
  created_at: number
  updated_at: number
}

export type ItemDependencyRow = { item_id: number; after_id: number }

export type ItemHistoryRow = {
  /** Auto-increment. */
  seq: Generated<number>
  item_id: number
  at: number
  by: string
  /** JSON. */
  change: string
}

export type ItemFollowerRow = { item_id: number; conversation: string; since: number }

export type FleetAgentRow = {
  id: string
  host: string
  name: string
  kind: string
  pool: string | null
  codebase_id: string
  program: string
  state: string
  item_id: number | null
  environment_id: string | null
  spawn: string
  /** JSON. */
  session: string | null
  restarts: number
  last_sign_at: number
  worked_at: number | null
  draining_since: number | null
  holder_pid: number
  holder_start_time: string
  created_at: number
  ended_at: number | null
}

export type FormulaRunRow = {
  id: string
  agent_id: string
  item_id: number | null
  formula: string
  /** JSON. */
  steps: string
  state: string
  branch: string
  sha: string | null
  pull_request: string | null
  close: number
  holder_host: string | null
  holder_pid: number | null
  holder_start_time: string | null
  waiter_pid: number | null
  waiter_start_time: string | null
  created_at: number
  updated_at: number
}

export type LandingRow = {
  id: number
  codebase_id: string
  item_id: number | null
  branch: string
  sha: string
  state: string
  landed_sha: string | null
  attempts: number
  /** JSON. */
  gate: string | null
  base_branch: string | null
  merge_commit: string | null
  /** JSON. */
  why: string | null
  todo: string | null
  created_by: string
  created_at: number
  updated_at: number
}

export type LandingQueueRow = {
  codebase_id: string
  holder_host: string | null
  holder_pid: number | null
  holder_start_time: string | null
  /** JSON. */
  push: string | null
  green_commit: string | null
  green_gates: string | null
  /** JSON. */
  blocked: string | null
}

export type PatrolNoteRow = {
  host: string
  subject: string
  what: string
  life: string
  first_seen: number
  last_seen: number
  times: number
  reported_at: number | null
  /** JSON. */
  data: string
}

export type FleetControlRow = { host: string; state: string; why: string; since: number }

export type HookRow = {
  host: string
  key: string
  position: number
  attempts: number
  next_attempt_at: number
  failed_at: number | null
  error: string | null
  holder_pid: number | null
  holder_start_time: string | null
}

/** Of the fleet, and reports of cleanup. */
export type EventTableRow = {
  /** Auto-increment. */
  seq: Generated<number>
  id: string
  at: number
  kind: string
  codebase_id: string | null
  environment_id: string | null
  data: string
  /** Of an event of the fleet. */
  number: number | null
  item_id: number | null
}
