import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../domain/errors.ts'
import { parseIdentityWord } from '../../domain/process-identity.ts'
import { liveness } from '../../process/identity.ts'
import type { FleetContext } from '../context.ts'
import { continueFormula, type FormulaOutcome } from './run-formula.ts'

/** How long the command that started us may take to print its answer and exit. */
const STARTER_MS = 60_000

/**
 * Continues a formula outside the session that it ends. While the command that started us is running, we are a
 * descendant of the session, so we wait for that command to exit first.
 */
export const leaveOutside = async (context: FleetContext, runId: string, starter: string): Promise<FormulaOutcome> => {
  const deadline = performance.now() + STARTER_MS
  const identity = parseIdentityWord(starter)
  const isRunning = (): boolean => identity !== undefined && liveness(identity) !== 'dead'
  for (; isRunning(); await delay(20)) {
    if (performance.now() > deadline) throw new AppError('timeout', `process ${identity?.pid} didn't end`)
  }
  for (;;) {
    const outcome = await continueFormula(context, runId)
    if (outcome.outcome !== 'busy') return outcome
    if (performance.now() > deadline) throw new AppError('timeout', 'another process is continuing it')
    await delay(100)
  }
}
