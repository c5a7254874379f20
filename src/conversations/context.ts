import type { Agent } from '../agents/agent.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { IsolationProvider } from '../isolation/provider.ts'
import type { Redact } from '../process/redact.ts'
import type { Changes } from './changes.ts'
import type { Delivery } from './delivery.ts'
import type { MessageQueue } from './queue.ts'
import type { RepoCommands } from './repo-commands.ts'
import type { RunTokens } from './run-tokens.ts'

/** What the conversations room stands on. `main.ts` is the only place that makes one. */
export type ConversationsContext = {
  readonly isolation: IsolationContext
  readonly provider: () => Promise<IsolationProvider>
  readonly queue: MessageQueue
  /** The agents by name, in the order in which a default is looked for. */
  readonly agents: ReadonlyMap<string, Agent>
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly changes: Changes
  /** Over whatever an agent or a command says before anybody reads it or it is recorded. */
  readonly redact: Redact
  /** For agents that want to ask the server about their run; undefined where there is no server. */
  readonly runTokens?: RunTokens
  /** Each codebase's own commands at the base commit they were last read from: a fact about a commit, read once. */
  readonly repoCommands: Map<string, { readonly sha: string; readonly commands: RepoCommands }>
  /** Below which each run gets a cgroup of its own; undefined where we may not make any. */
  readonly cgroup: string | undefined
  /** Prepares spares in the background. Never fails, never waits. */
  readonly keepSpares: (codebaseId: string) => void
}
