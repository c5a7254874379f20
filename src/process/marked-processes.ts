import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { liveness } from './identity.ts'
import type { RunMark } from './run-mark.ts'
import type { ProcessRow } from './process-row.ts'
import { processesOfRuns } from './run-processes.ts'

export type LeftProcess = ProcessIdentity & {
  /** The program's name without arguments: this is shown publicly, and they may contain a secret. */
  readonly command: string
}

export const namedProcess = ({ identity, command }: ProcessRow): LeftProcess => ({ ...identity, command })

export type MarkedProcesses = {
  readonly named: readonly LeftProcess[]
  /** Something keeps forking and exiting, so no pid identifies it for long. */
  readonly unnamed: boolean
  /** All processes seen, including those that have exited. */
  readonly seen: readonly ProcessIdentity[]
}

/** The live processes with one of these marks. */
export const markedProcesses = async (marks: readonly RunMark[]): Promise<MarkedProcesses> => {
  const seen: ProcessIdentity[] = []
  for (let look = 1; ; look += 1) {
    const { rows, complete } = await processesOfRuns(marks)
    seen.push(...rows.map(({ identity }) => identity))
    const named = rows.filter(({ identity }) => liveness(identity) !== 'dead').map(namedProcess)
    if (named.length > 0) return { named, unnamed: false, seen }
    // Those found have exited. Look again to see whether they were the last.
    if (rows.length === 0 && complete) return { named, unnamed: false, seen }
    if (look === MAX_LOOKS) return { named, unnamed: true, seen }
  }
}

const MAX_LOOKS = 5

export const isAnyMarked = ({ named, unnamed }: MarkedProcesses): boolean => named.length > 0 || unnamed

/** Those that remain. */
export const lingeringProcesses = (marks: readonly RunMark[]): Promise<MarkedProcesses> =>
  retryWhile(isAnyMarked, () => markedProcesses(marks))

/**
 * Retries briefly while something is found: a background `git gc`, or a `git status` that someone runs in the worktree,
 * exits by itself and isn't worth mentioning. Each look gets the previous result.
 */
export const retryWhile = async <Found>(
  shouldRetry: (found: Found) => boolean,
  look: (before: Found | undefined) => Promise<Found>,
): Promise<Found> => {
  let found = await look(undefined)
  for (const pause of [50, 100, 200, 400]) {
    if (!shouldRetry(found)) break
    await delay(pause)
    found = await look(found)
  }
  return found
}
