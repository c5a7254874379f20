import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { liveness } from './identity.ts'
import type { RunMark } from './run-mark.ts'
import type { ProcessRow } from './process-row.ts'
import { processesOfRuns } from './run-processes.ts'

export type LeftProcess = ProcessIdentity & {
  /** The program's name. Not its arguments: they may hold a secret, and this is said in public. */
  readonly command: string
}

export const namedProcess = ({ identity, command }: ProcessRow): LeftProcess => ({ ...identity, command })

export type MarkedProcesses = {
  readonly named: readonly LeftProcess[]
  /** Something is there that no pid names for long: it forks and ends all the time. */
  readonly unnamed: boolean
  /** All that were seen, those that have ended since among them. */
  readonly seen: readonly ProcessIdentity[]
}

/** The live processes that carry one of these marks. */
export const markedProcesses = async (marks: readonly RunMark[]): Promise<MarkedProcesses> => {
  const seen: ProcessIdentity[] = []
  for (let look = 1; ; look += 1) {
    const { rows, complete } = await processesOfRuns(marks)
    seen.push(...rows.map(({ identity }) => identity))
    const named = rows.filter(({ identity }) => liveness(identity) !== 'dead').map(namedProcess)
    if (named.length > 0) return { named, unnamed: false, seen }
    // Whoever was there has ended since. Another look tells whether it was the last one.
    if (rows.length === 0 && complete) return { named, unnamed: false, seen }
    if (look === MOST_LOOKS) return { named, unnamed: true, seen }
  }
}

const MOST_LOOKS = 5

export const isAnyMarked = ({ named, unnamed }: MarkedProcesses): boolean => named.length > 0 || unnamed

/** Those that stay. */
export const lingeringProcesses = (marks: readonly RunMark[]): Promise<MarkedProcesses> =>
  lookAgainWhile(isAnyMarked, () => markedProcesses(marks))

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
