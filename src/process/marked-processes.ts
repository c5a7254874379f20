import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { liveness } from './identity.ts'
import { processesOfRuns, type RunMark } from './run-mark.ts'
import type { ProcessRow } from './process-row.ts'

export type LeftProcess = ProcessIdentity & {
  /** The program's name. Not its arguments: they may hold a secret, and this is said in public. */
  readonly command: string
}

export const namedProcess = ({ identity, command }: ProcessRow): LeftProcess => ({ ...identity, command })

/** The live processes that carry one of these marks, by name. */
export const markedProcesses = async (marks: readonly RunMark[]): Promise<readonly LeftProcess[]> =>
  (await processesOfRuns(marks)).filter(({ identity }) => liveness(identity) !== 'dead').map(namedProcess)

/** Those that stay. */
export const lingeringProcesses = (marks: readonly RunMark[]): Promise<readonly LeftProcess[]> =>
  lookAgainWhile(
    ({ length }) => length > 0,
    () => markedProcesses(marks),
  )

/**
 * Looks again for a moment while something is there: a `git gc` in the background, or a `git status` that a person runs
 * in the worktree, ends by itself and isn't worth mentioning. Each look gets what the previous one found.
 */
export const lookAgainWhile = async <Found>(
  isAnything: (found: Found) => boolean,
  look: (before: Found | undefined) => Promise<Found>,
): Promise<Found> => {
  let found = await look(undefined)
  for (const pause of [50, 100, 200, 400]) {
    if (!isAnything(found)) break
    await delay(pause)
    found = await look(found)
  }
  return found
}
