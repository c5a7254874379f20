import type { RunsContext } from '../runs/context.ts'
import type { Changes } from './changes.ts'
import type { Delivery } from './delivery.ts'
import type { MessageQueue } from './queue.ts'
import type { RepoCommands } from './repo-commands.ts'

/** What conversations need: all that a run needs, and the way in and out. `main.ts` is the only place that makes one. */
export type ConversationsContext = RunsContext & {
  readonly queue: MessageQueue
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly changes: Changes
  /** Each codebase's own commands at the base commit they were last read from: a fact about a commit, read once. */
  readonly repoCommands: Map<string, { readonly sha: string; readonly commands: RepoCommands }>
  /** Prepares spares in the background. Never fails, never waits. */
  readonly keepSpares: (codebaseId: string) => void
}
