import type { LoadPlatforms } from '../domain/platform-capabilities.ts'
import type { FleetContext } from '../fleet/context.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Changes } from './changes.ts'
import type { Delivery } from './outbox/delivery.ts'
import type { MessageQueue } from './inbox/queue.ts'
import type { RepoCommandCache } from '../commands/repo-commands.ts'

/** Dependencies of conversations: those of a run, and the inbox and outbox. Created only in `main.ts`. */
export type ConversationsContext = RunsContext & {
  readonly queue: MessageQueue
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly platforms: LoadPlatforms
  readonly changes: Changes
  readonly repoCommands: RepoCommandCache
  /** Lazy: only the fleet's commands need it. */
  readonly fleet: () => Promise<FleetContext>
  /** Prepares spares in the background. Never throws or blocks. */
  readonly keepSpares: (codebaseId: string) => void
}
