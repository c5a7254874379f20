import type { Agent } from '../agents/agent.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { RunTokens } from './tokens.ts'

/** Dependencies of a run. Created only in `main.ts`. */
export type RunsContext = {
  readonly isolation: IsolationContext
  readonly environments: () => Promise<Environments>
  /** By name, in the order in which a default is chosen. */
  readonly agents: ReadonlyMap<string, Agent>
  /** Applied to all agent output before it is shown or recorded. */
  readonly redact: Redact
  /** Lets agents ask the server about their run; undefined without a server. */
  readonly runTokens?: RunTokens
  /** The parent of each run's cgroup; undefined if we may not create any. */
  readonly cgroup: string | undefined
}
