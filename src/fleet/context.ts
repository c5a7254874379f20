import type { FleetEvent } from '../domain/fleet/event.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Store } from '../store/store.ts'
import type { Sessions } from './sessions/registry.ts'

/** Dependencies of the fleet. Created only in `main/`. */
export type FleetContext = Pick<RunsContext, 'isolation' | 'environments' | 'agents' | 'redact' | 'cgroup'> & {
  readonly sessions: Sessions
  /** The program and its first arguments that run this installation of Coppice. */
  readonly installation: readonly [string, ...string[]]
  /**
   * Records the event, and notifies the conversations that follow its item. Call it in the transaction that makes the
   * change, so that the event is recorded if and only if it happened. `except`: a conversation that gets the answer of
   * its own command instead.
   */
  readonly notify: (store: Store, event: FleetEvent, except?: string) => Promise<void>
  /** The formula runs that this process is executing. */
  readonly executing: Set<string>
  /** Makes this home's server start a round now. False if there is no server, or it is this process. */
  readonly wakeServer: () => Promise<boolean>
  /** Starts an internal command in a process that outlives this one and belongs to no session. */
  readonly inBackground: (words: readonly string[]) => Promise<void>
}
