import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import { killTree } from '../process/kill.ts'
import { processesWithVariable } from '../process/marked.ts'

/** Names the run in the environment of its agent, and of whatever that starts, with a value that no other run has. */
export const runVariable = 'COPPICE_RUN'

const GRACE_MS = 2_000

/** What went into a session of its own and lost its parent is in no tree any more: it is found by what it inherited. */
export const endMarked = async (mark: string, clock: Clock): Promise<void> => {
  for (const stray of await processesWithVariable(runVariable, mark)) {
    const killed = await killTree(stray, { graceMs: GRACE_MS, clock })
    if (killed.outcome !== 'survivors') continue
    throw new AppError('busy', `process ${stray.pid}, which the agent started, could not be ended`, {
      remedy: `end process ${stray.pid} by hand`,
    })
  }
}
