import { recordCrash } from '../crash.ts'
import type { AgentRow } from '../row.ts'
import { isOldEnough, isSessionDead, shouldRun } from '../seen.ts'

/**
 * The session is gone, but something of it has survived: the program, if it ignored the SIGHUP of a tmux server that was
 * killed, or what a killed program had started. Nobody can reach it any more, and it would work beside its successor.
 */
export const outlivedSession: AgentRow = {
  name: 'outlived-session',
  isConfirmed: true,
  applies: (seen, { control, now }) =>
    control.state !== 'down' &&
    shouldRun(seen) &&
    ((seen.session === 'no' && seen.process === 'yes' && isOldEnough(seen, now)) ||
      (isSessionDead(seen) && seen.leftovers === 'yes')),
  act: (context, seen) => recordCrash(context, seen, 'outlived-session', { isOrphan: seen.process === 'yes' }),
}
