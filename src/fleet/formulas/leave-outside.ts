import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../domain/errors.ts'
import { parseIdentityWord } from '../../domain/process-identity.ts'
import { liveness } from '../../process/identity.ts'
import type { FleetContext } from '../context.ts'
import { continueFormula, type FormulaOutcome } from './run-formula.ts'

/** The command that started us only has to print its answer. */
const PATIENCE_MS = 60_000

/**
 * Goes on with a formula outside of the session that it ends. While the command that started us runs, we descend from
 * the session ourselves, so its end is awaited first.
 */
export const leaveOutside = async (context: FleetContext, runId: string, starter: string): Promise<FormulaOutcome> => {
  const deadline = performance.now() + PATIENCE_MS
  const identity = parseIdentityWord(starter)
  const isRunning = (): boolean => identity !== undefined && liveness(identity) !== 'dead'
  for (; isRunning(); await delay(20)) {
    if (performance.now() > deadline) throw new AppError('timeout', `process ${identity?.pid} didn't end`)
  }
  for (;;) {
    const outcome = await continueFormula(context, runId)
    if (outcome.outcome !== 'busy') return outcome
    if (performance.now() > deadline) throw new AppError('timeout', 'another process goes on with it')
    await delay(100)
  }
}
