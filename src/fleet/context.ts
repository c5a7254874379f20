import type { FleetEvent } from '../domain/fleet/event.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Store } from '../store/store.ts'
import type { Sessions } from './sessions/registry.ts'

/** Dependencies of the fleet. Created only in `main/`. */
export type FleetContext = Pick<RunsContext, 'isolation' | 'environments' | 'agents' | 'redact' | 'cgroup'> & {
  readonly sessions: Sessions
  /** The program and first arguments that run this very installation. */
  readonly installation: readonly [string, ...string[]]
  /**
   * Tells whoever listens, such as the conversations that follow an item, what happened. Called in the transaction that
   * records it, so that they hear of it exactly if it happened. `except`: a conversation that is answered by its own
   * command.
   */
  readonly tell: (store: Store, event: FleetEvent, except?: string) => Promise<void>
  /** The formula runs that this process executes now. */
  readonly executing: Set<string>
  /** Tells this home's server to look at the fleet. False if there is none, or we are it. */
  readonly wakeServer: () => Promise<boolean>
  /** Starts an internal command in a process that outlives us and belongs to no session. */
  readonly inBackground: (words: readonly string[]) => Promise<void>
}
