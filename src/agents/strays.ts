import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import { killRun } from '../process/kill.ts'
import type { RunMark } from '../process/run-mark.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

const GRACE_MS = 2_000

/** Kills what a cancelled run left outside its process tree. Throws `busy` if something survives. */
export const endStrays = async (mark: RunMark, clock: Clock): Promise<void> => {
  const killed = await killRun([mark], { graceMs: GRACE_MS, clock })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid)
  throw pids.length === 0
    ? new AppError('busy', "something the agent started couldn't be stopped, and Coppice has no process ID for it", {
        remedy: remedy`run ${coppice('stop')}; if that doesn't help, restart the machine`,
      })
    : new AppError('busy', `the agent started processes that couldn't be stopped: ${pids.join(', ')}`, {
        remedy: remedy`run: ${shell(`kill -9 ${pids.join(' ')}`)}`,
      })
}
