import { isIntended, nextStep, stepName } from '../../../domain/fleet/formula.ts'
import { giveUp } from '../park.ts'
import type { AgentRow } from '../row.ts'
import { isHooked, isSessionDead } from '../seen.ts'

const name = 'formula-failed'

/** Every round tries again. After this long without success, a person is needed, too. */
const TRIED_MS = 10 * 60_000

/** A finishing agent has died, and what it began can't be completed: its remote refuses the push, for example. */
export const formulaFailed: AgentRow = {
  name,
  applies: (seen, { now }) =>
    seen.formula === 'abandoned' &&
    seen.run !== undefined &&
    isIntended(seen.run) &&
    isHooked(seen) &&
    isSessionDead(seen) &&
    now - seen.run.createdAt >= TRIED_MS,
  act: async (context, seen, round) => {
    const step = seen.run?.steps[nextStep(seen.run.steps) ?? -1]
    if (step?.detail === undefined) return undefined
    const reason = { kind: 'formula-failed', step: stepName(step.step), message: step.detail } as const
    return giveUp(context, seen, round, { row: name, reason })
  },
}
