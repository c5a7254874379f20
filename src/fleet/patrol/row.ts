import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { ParkReason } from '../../domain/fleet/item.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { FleetContext } from '../context.ts'
import type { FormulaOutcome } from '../formulas/run-formula.ts'
import type { Look } from './look.ts'
import type { Round, Seen } from './seen.ts'

/** What a round found and did. `commands/views/` has the wording. */
export type Finding = { readonly row: string; readonly agent?: string; readonly item?: number | undefined } & (
  | { readonly did: 'start-recovered' | 'stop-recovered' | 'ended' | 'removed' | 'unhooked' | 'revived' | 'reclaimed' }
  /** Its session has died. `stopped`: it isn't started again, because its pool is shrinking. */
  | { readonly did: 'crashed' | 'stopped' }
  | { readonly did: 'restarted'; readonly restarts: number }
  | { readonly did: 'parked'; readonly reason: ParkReason }
  | { readonly did: 'finished'; readonly formula: string; readonly outcome: FormulaOutcome['outcome'] }
  | { readonly did: 'nudged' | 'stuck'; readonly since: number }
  | { readonly did: 'told'; readonly supervisor: string }
  | { readonly did: 'paused'; readonly agents: readonly string[] }
)

export type PatrolOptions = {
  /** Finishes an abandoned formula (default: before the round goes on). */
  readonly finish?: (run: FormulaRun) => Promise<FormulaOutcome | undefined>
}

export type RowContext = FleetContext & Required<PatrolOptions> & { readonly supervisor: Seen | undefined }

/** One line of the patrol's table: what is seen of an agent, and what is done about it. */
export type AgentRow = {
  readonly name: string
  /** Pure. */
  readonly applies: (seen: Seen, round: Round) => boolean
  /** Acts only if it still applies in a second round, some time later. */
  readonly isConfirmed?: true
  /** Nothing is found if it has changed since it was seen, or was reported before. */
  readonly act: (context: RowContext, seen: Seen, round: Round) => Promise<Finding | undefined>
}

/** The same about the whole fleet of this host. */
export type FleetRow = {
  readonly name: string
  readonly actOnFleet: (context: RowContext, look: Look) => Promise<readonly Finding[]>
}

export type Row = AgentRow | FleetRow

export const about = ({ name, itemId }: FleetAgent, row: string) => ({ row, agent: name, item: itemId })
