import { recordCrash } from '../crash.ts'
import type { AgentRow } from '../row.ts'
import { isGoneCompletely, shouldRun } from '../seen.ts'

/** Session, first process and everything it had started are dead, and nobody was stopping or finishing it. */
export const crashed: AgentRow = {
  name: 'crashed',
  applies: (seen, { control }) => control.state !== 'down' && shouldRun(seen) && isGoneCompletely(seen),
  act: (context, seen) => recordCrash(context, seen, 'crashed'),
}
