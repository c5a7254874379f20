import { mayHaveSession } from '../../../domain/fleet/agent.ts'
import { giveUp } from '../park.ts'
import type { AgentRow } from '../row.ts'
import { isHooked } from '../seen.ts'

const name = 'worktree-missing'

/**
 * The worktree of a hooked item is missing, perhaps because its disk isn't mounted: nobody can tell what is in it, so the
 * item is never unhooked. A dead agent's worktree that can't be used is the same.
 */
export const worktreeMissing: AgentRow = {
  name,
  isConfirmed: true,
  applies: (seen) =>
    isHooked(seen) &&
    seen.formula === 'none' &&
    seen.worktree === 'unknown' &&
    (seen.isMissing || (!mayHaveSession(seen.agent.state) && seen.environment?.status === 'active')),
  act: (context, seen, round) =>
    giveUp(context, seen, round, {
      row: name,
      reason: { kind: 'worktree-missing', path: seen.environment?.path ?? '' },
    }),
}
