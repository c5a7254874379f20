/*
 * Sessions: where an agent's program runs, so that it can be watched, spoken to and ended. In: an agent, a directory, a
 * command. Out: its process. tmux and plain background processes implement the same; `registry.ts` chooses.
 */
import type { FleetSession, SessionKind } from '../../domain/fleet/agent.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import type { RunMark } from '../../process/run-mark.ts'
import type { AttachCommand } from '../../process/tmux.ts'

export type NewSession = {
  /** The agent's name. */
  readonly name: string
  /** The worktree. */
  readonly directory: string
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]]
  /** The program's whole environment. */
  readonly variables: Readonly<Record<string, string>>
  /** On every process of the session, to find any that it leaves behind. */
  readonly mark: RunMark
  /** Its commands run in a sandbox, so the session does for them what they can't (`requests.ts`). */
  readonly answersRequests?: boolean | undefined
  /** In a terminal, Ctrl-C becomes Escape. */
  readonly escapeOnInterrupt?: boolean | undefined
}

export type SessionKindRules = {
  readonly kind: SessionKind
  readonly can: { readonly attach: boolean }
  /**
   * Starts the program. `onBegun` is called when the session has its first process. Resolves when the program itself is
   * running; if it doesn't start, ends what was started and throws.
   */
  start(session: NewSession, onBegun: (session: FleetSession) => Promise<void>): Promise<FleetSession>
  /** Those of this kind that exist now, by agent name. Throws if that can't be told. */
  list(): Promise<readonly ListedSession[]>
  /** The last lines that it printed. */
  peek(session: FleetSession, lines: number): Promise<string>
  /** Gives the program this text as input. */
  send(session: FleetSession, text: string): Promise<void>
  /** After all its processes have ended: removes what is left of it. */
  clear(name: string): Promise<void>
  /** What attaches a terminal. Only with `can.attach`. */
  attachCommand?(session: FleetSession): AttachCommand
}

export type ListedSession = {
  readonly name: string
  readonly target: string
  readonly root: ProcessIdentity | undefined
  readonly startedAt: number | undefined
  /** Its program has ended. */
  readonly dead: boolean
}
