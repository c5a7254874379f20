import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { type FleetAgent, isBeingStopped, mayHaveSession } from '../../domain/fleet/agent.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { FleetControl, PatrolNote } from '../../store/fleet/store.ts'

/** The answer to a question about the world. What isn't known never leads to ending, unhooking or starting anything. */
export type Probe = 'yes' | 'no' | 'unknown'

/** What one look has shown about an agent. */
export type Seen = {
  readonly agent: FleetAgent
  readonly item: Item | undefined
  readonly codebase: Codebase | undefined
  readonly environment: IsolatedEnvironment | undefined
  /** Its session is listed as alive. */
  readonly session: Probe
  /** No session of its name is listed at all, alive or dead. */
  readonly isUnlisted: boolean
  /** The first process of its session runs, by pid and start time. */
  readonly process: Probe
  /** Its program runs, inside the session. */
  readonly program: Probe
  /** Marked processes of it run, wherever. `unknown` unless its session or first process seems to be dead. */
  readonly leftovers: Probe
  /** `no`: provably removed. */
  readonly worktree: Probe
  /** There is nothing at the worktree's path. It may be on a disk that isn't mounted. */
  readonly isMissing: boolean
  /** Whoever is starting or stopping it runs. */
  readonly holder: Probe
  /** `coppice done`: being executed, or left behind by a process that died. */
  readonly formula: 'none' | 'held' | 'abandoned'
  readonly run: FormulaRun | undefined
  /** The last output, CPU time or recorded sign. */
  readonly lastSignAt: number
}

/** What rows know besides one agent. */
export type Round = {
  readonly now: number
  readonly control: FleetControl
  readonly restarts: number
  readonly stuckMs: number
  /** From earlier rounds, about this session of the agent. */
  readonly noteOf: (agent: FleetAgent, what: string) => PatrolNote | undefined
}

/** Two signals agree: neither its session nor its first process is alive. */
export const isSessionDead = ({ session, process }: Seen): boolean => session === 'no' && process === 'no'

/** And nothing else of it runs. */
export const isGoneCompletely = (seen: Seen): boolean => isSessionDead(seen) && seen.leftovers === 'no'

/** It should have a session: nobody is starting, stopping or finishing it. */
export const shouldRun = ({ agent, formula }: Seen): boolean =>
  mayHaveSession(agent.state) && agent.state !== 'spawning' && !isBeingStopped(agent) && formula === 'none'

/** It has an item that it is to work on. A parked item waits for a person. */
export const isHooked = ({ item }: Seen): boolean => item?.state === 'hooked'

/** Nothing younger is taken for an orphan: whoever started it may be about to record it. */
const ORPHAN_MS = 60_000

export const isOldEnough = ({ agent: { session } }: Seen, now: number): boolean =>
  session !== undefined && now - session.startedAt >= ORPHAN_MS
