import type { Agent } from '../agents/agent.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { RunTokens } from './tokens.ts'

/** What a run needs. `main.ts` is the only place that makes one. */
export type RunsContext = {
  readonly isolation: IsolationContext
  readonly environments: () => Promise<Environments>
  /** The agents by name, in the order in which a default is looked for. */
  readonly agents: ReadonlyMap<string, Agent>
  /** Applied to everything an agent prints before anybody reads it or it is recorded. */
  readonly redact: Redact
  /** For agents that want to ask the server about their run; undefined where there is no server. */
  readonly runTokens?: RunTokens
  /** Below which each run gets a cgroup of its own; undefined where we may not make any. */
  readonly cgroup: string | undefined
}
