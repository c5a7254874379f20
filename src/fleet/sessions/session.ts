/*
 * Sessions: where an agent's program runs, so that it can be watched, sent messages and ended. In: an agent, a
 * directory, a command. Out: its process. Implemented by tmux and by plain background processes; `registry.ts` chooses.
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
  /** Inherited by every process of the session, to find any that it leaves behind. */
  readonly mark: RunMark
  /** The program's commands run in a sandbox, so the session answers their requests (`requests.ts`). */
  readonly answersRequests?: boolean | undefined
  /** In a terminal, send Escape for Ctrl-C. */
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
  /** The sessions of this kind that exist now. Throws if they can't be listed. */
  list(): Promise<readonly ListedSession[]>
  /** The last lines that the program printed. */
  peek(session: FleetSession, lines: number): Promise<string>
  /** Sends the program a text as input. */
  send(session: FleetSession, text: string): Promise<void>
  /** Removes what is left of a session whose processes have all ended. */
  clear(name: string): Promise<void>
  /** The command that attaches a terminal. Only with `can.attach`. */
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
