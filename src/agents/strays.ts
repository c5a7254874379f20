import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import { killRun } from '../process/kill.ts'
import type { RunMark } from '../process/run-mark.ts'

const GRACE_MS = 2_000

/** Ends what a cancelled run left outside of its process tree. Throws `busy` when something survives. */
export const endStrays = async (mark: RunMark, clock: Clock): Promise<void> => {
  const killed = await killRun([mark], { graceMs: GRACE_MS, clock })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid).join(', ')
  throw new AppError('busy', `the agent started processes that could not be ended: ${pids || 'in another namespace'}`, {
    remedy: pids === '' ? 'end them by hand' : `run: kill -9 ${pids.replaceAll(',', '')}`,
  })
}
