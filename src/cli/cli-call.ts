import type { Call } from '../commands/command.ts'
import type { OwnEngine } from './chat/without-server.ts'

/** What only the command line can be asked for: it may become the server, and it writes while it works. */
export type CliCall = Call & {
  readonly cwd: string
  /** Writes at once, for who watches; undefined when the answer is for a program. */
  readonly live: ((text: string) => void) | undefined
  /** Shows a secret to the person at the terminal; undefined where output may end up in a log, a pipe or a file. */
  readonly showSecret: ((text: string) => void) | undefined
  readonly serve: (options: ServeOptions) => Promise<Serving>
  /** Works on one conversation in this very process. */
  readonly ownEngine: (conversationId: string) => Promise<OwnEngine>
}

export type ServeOptions = {
  readonly port: number
  readonly host: string
  /** Listening beyond this machine was asked for in so many words. */
  readonly allowRemote: boolean
  readonly allowedHosts: readonly string[]
  readonly testPlatform: boolean
  /** How long running work may take to finish when we are told to stop. */
  readonly graceMs: number
  readonly signal: AbortSignal
}

export type Serving = {
  readonly url: string
  readonly tokenFile: string
  /** Only when it was made just now: the one time it may be shown, and only on a terminal. */
  readonly newToken: string | undefined
  /** What was finished or undone from before, and what could not be started. */
  readonly notices: readonly string[]
  /** When it has been told to stop and everything is put away. */
  readonly stopped: Promise<Stopped>
}

export type Stopped = { readonly finished: number; readonly left: number }
