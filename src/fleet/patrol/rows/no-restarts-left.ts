import { giveUp } from '../park.ts'
import type { AgentRow } from '../row.ts'
import { isHooked } from '../seen.ts'

const name = 'no-restarts-left'

/** It has crashed too often. Its item is parked, never unhooked: the worktree may hold the only copy of its work. */
export const noRestartsLeft: AgentRow = {
  name,
  applies: (seen, { restarts, control }) =>
    control.state === 'up' &&
    isHooked(seen) &&
    seen.agent.state === 'crashed' &&
    seen.formula === 'none' &&
    seen.agent.restarts >= restarts,
  act: (context, seen, round) =>
    giveUp(context, seen, round, { row: name, reason: { kind: 'crashed', restarts: seen.agent.restarts } }),
}
