import type { Clock, Ids } from '../../domain/clock.ts'
import type { AcpAgentSettings, Permissions } from '../../domain/config/agents.ts'

export type AcpAgentOptions = AcpAgentSettings & {
  readonly permissions: Permissions
  /** Stalled after this long without output and with no tool running. */
  readonly silenceMs: number
  readonly clock: Clock
  readonly ids: Ids
  /** Ours: for finding programs, and for inspecting the agent outside a run. */
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  /** Private. Inspection creates a temporary directory in it. */
  readonly contextDirectory: string
  readonly outputLimitBytes?: number
}
