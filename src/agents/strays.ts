import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import { killRun } from '../process/kill.ts'
import type { RunMark } from '../process/run-mark.ts'

const GRACE_MS = 2_000

/** Kills what a cancelled run left outside its process tree. Throws `busy` if something survives. */
export const endStrays = async (mark: RunMark, clock: Clock): Promise<void> => {
  const killed = await killRun([mark], { graceMs: GRACE_MS, clock })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid)
  throw pids.length === 0
    ? new AppError('busy', "something the agent started couldn't be stopped, and Coppice has no process ID for it", {
        remedy: "run /stop; if that doesn't help, restart the machine",
      })
    : new AppError('busy', `the agent started processes that couldn't be stopped: ${pids.join(', ')}`, {
        remedy: `run: kill -9 ${pids.join(' ')}`,
      })
}
