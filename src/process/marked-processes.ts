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

/** Those that stay. A `git gc` in the background, say, is over in a moment and not worth a word. */
export const lingeringProcesses = async (marks: readonly RunMark[]): Promise<readonly LeftProcess[]> => {
  let found = await markedProcesses(marks)
  for (const pause of LOOK_AGAIN_MS) {
    if (found.length === 0) break
    await delay(pause)
    found = await markedProcesses(marks)
  }
  return found
}

/** How long to wait before each further look. */
export const LOOK_AGAIN_MS = [50, 100, 200, 400]
