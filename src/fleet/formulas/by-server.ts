import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { nextStep, stepName } from '../../domain/fleet/formula.ts'
import type { FleetContext } from '../context.ts'
import { continueFormula, type FormulaOutcome, isHeld, refused, runOf } from './run-formula.ts'

/** A server that is starting agents may need this long to begin. */
const TAKEN_WITHIN_MS = 15_000

/**
 * Lets the server execute the steps after the intent, because it has credentials that an agent's session doesn't, and
 * waits for it. This process then ends the session. Without a server, it executes all steps.
 */
export const finishByServer = async (
  context: FleetContext,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<FormulaOutcome> => {
  const { store, self, clock } = context.isolation
  await store.formulaRuns.update(runId, { waiter: self }, clock())
  if (!(await context.wakeServer())) return continueFormula(context, runId, { signal })
  let takenBy = performance.now() + TAKEN_WITHIN_MS
  for (;;) {
    const run = await runOf(context, runId)
    if (run.state === 'refused') return refused(run)
    if (run.state === 'done') return { outcome: 'done', run }
    const at = nextStep(run.steps)
    const next = at === undefined ? undefined : run.steps[at]
    if (isHeld(context, run)) takenBy = performance.now() + TAKEN_WITHIN_MS
    else {
      if (next?.step === 'leave' || performance.now() > takenBy) {
        const outcome = await continueFormula(context, runId, { signal })
        // If busy, the server has just taken the run again, only to find that `leave` is left.
        if (outcome.outcome !== 'busy') return outcome
      } else if (next?.detail !== undefined) {
        throw new AppError('program-failed', `the step \`${stepName(next.step)}\` failed: ${next.detail}`, {
          remedy: remedy`run ${coppice('done')} again: it continues where it stopped`,
        })
      }
    }
    signal?.throwIfAborted()
    await delay(50)
  }
}
