import type { Call } from '../commands/command.ts'
import type { View } from '../commands/views/view.ts'
import type { OwnEngine } from './chat/without-server.ts'

/** A call that only the command line supports: it may become the server, and it writes while working. */
export type CliCall = Call & {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Writes at once, for people; undefined if the output is for a program. */
  readonly live: ((text: string) => void) | undefined
  /** For output that comes bit by bit, in both forms. */
  readonly output: {
    readonly isJson: boolean
    readonly view: View
    readonly write: (text: string) => void
    /** Whoever reads it has closed it. */
    readonly closed: AbortSignal
  }
  /** Shows a secret on the terminal; undefined if output may end up in a log, pipe or file. */
  readonly showSecret: ((text: string) => void) | undefined
  readonly serve: (options: ServeOptions) => Promise<Serving>
  /** Runs one conversation in this process. */
  readonly ownEngine: (conversationId: string) => Promise<OwnEngine>
}

export type ServeOptions = {
  readonly port: number
  readonly host: string
  /** Listening beyond this machine was explicitly requested. */
  readonly allowRemote: boolean
  readonly allowedHosts: readonly string[]
  readonly testPlatform: boolean
  /** Shutdown grace period for running work. */
  readonly graceMs: number
  readonly signal: AbortSignal
}

export type Serving = {
  readonly url: string
  readonly tokenFile: string
  /** Only if just created: the one time it may be shown, and only on a terminal. */
  readonly newToken: string | undefined
  /** What was recovered at the start, and what couldn't be started. */
  readonly notices: readonly string[]
  /** Resolves after a complete shutdown. */
  readonly stopped: Promise<Stopped>
}

export type Stopped = { readonly finished: number; readonly left: number }
