import { recordCrash } from '../crash.ts'
import type { AgentRow } from '../row.ts'
import { shouldRun } from '../seen.ts'

/**
 * The session is listed as alive, but its program is dead. Confirmed twice: tmux notices an end only when the terminal is
 * closed, and the shell around a program takes a moment to end after it.
 */
export const zombie: AgentRow = {
  name: 'zombie',
  isConfirmed: true,
  applies: (seen, { control }) =>
    control.state !== 'down' &&
    shouldRun(seen) &&
    seen.session === 'yes' &&
    (seen.process === 'no' || (seen.process === 'yes' && seen.program === 'no')),
  act: (context, seen) => recordCrash(context, seen, 'zombie'),
}
