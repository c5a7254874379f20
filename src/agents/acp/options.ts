import type { Clock, Ids } from '../../domain/clock.ts'
import type { AcpAgentSettings, Permissions } from '../../domain/config/agents.ts'

export type AcpAgentOptions = AcpAgentSettings & {
  readonly permissions: Permissions
  /** Without a word for so long, and with no tool at work, it has stalled. */
  readonly silenceMs: number
  readonly clock: Clock
  readonly ids: Ids
  /** Ours: where programs are looked for, and for whoever asks after it without a run. */
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  /** Private; a look at the agent has a directory in it for as long as it takes. */
  readonly contextDirectory: string
  readonly outputLimitBytes?: number
}
