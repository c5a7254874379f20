import type { IsolationContext } from '../../isolation/context.ts'

/** What sessions need. `env`: our own variables, of which tmux gets a few. */
export type SessionsContext = Pick<IsolationContext, 'home' | 'clock' | 'log' | 'lock'> & {
  readonly env: Readonly<Record<string, string | undefined>>
  /** A longer log is moved aside: of an agent's life, up to twice as much is kept (default: 10 MB). */
  readonly longestLogBytes?: number
}
