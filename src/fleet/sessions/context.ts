import type { IsolationContext } from '../../isolation/context.ts'

/** What sessions need. `env`: this process's variables, some of which tmux gets. */
export type SessionsContext = Pick<IsolationContext, 'home' | 'clock' | 'log' | 'lock'> & {
  readonly env: Readonly<Record<string, string | undefined>>
  /** A log that reaches this size is rotated, so up to twice as much is kept per agent (default: 10 MB). */
  readonly longestLogBytes?: number
}
