import type { ProcessReading } from './process-reading.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { readDarwinProcess } from './identity-darwin.ts'
import { readLinuxProcess, readLinuxTerminal } from './identity-linux.ts'
import { isSame } from './tree.ts'

export type Liveness = 'alive' | 'dead' | 'cannot-tell'

/** Identity of the process that has this pid now; undefined if none does or it can't be read. */
export const identifySync = (pid: number): ProcessIdentity | undefined => {
  const reading = readProcess(pid)
  return reading.kind === 'there' ? { pid, startTime: reading.startTime } : undefined
}

export const selfIdentity = (): ProcessIdentity => {
  const identity = identifySync(process.pid)
  // Without it, nothing we start could be recognized after a crash, so don't start.
  if (identity === undefined) throw new Error("couldn't read this process's own start time")
  return identity
}

/**
 * Whether this exact process is running. A zombie has exited and counts as dead. So does a pid with another start time
 * or boot: it belongs to another process.
 */
export const liveness = (identity: ProcessIdentity): Liveness => {
  const reading = readProcess(identity.pid)
  if (reading.kind === 'cannot-tell') return 'cannot-tell'
  if (reading.kind === 'gone') return 'dead'
  return reading.startTime === identity.startTime && !reading.zombie ? 'alive' : 'dead'
}

/** Whether a process has a controlling terminal. Only Linux tells without starting a program. */
export const hasTerminal = ({ pid }: ProcessIdentity): 'yes' | 'no' | 'unknown' =>
  process.platform === 'linux' ? readLinuxTerminal(pid) : 'unknown'

/** The same for a process that is most often ourselves: then nothing is read. */
export const livenessSeenBy = (self: ProcessIdentity, identity: ProcessIdentity): Liveness =>
  isSame(self, identity) ? 'alive' : liveness(identity)

/** Whether it was started before this boot, or before the container that we are in. Then it ended with that. */
export const isFromEarlierBoot = (identity: ProcessIdentity): boolean => {
  const first = identifySync(1)
  return first !== undefined && (startOf(first).boot !== startOf(identity).boot || startedBefore(identity, first))
}

/** By start time; false if they can't be compared (another boot). */
export const startedBefore = (one: ProcessIdentity, other: ProcessIdentity): boolean => {
  const [a, b] = [startOf(one), startOf(other)]
  return a.boot === b.boot && a.at < b.at
}

/** Linux: boot id and ticks; macOS: a date to the second. */
const startOf = ({ startTime }: ProcessIdentity): { boot: string; at: number } => {
  const [, boot, ticks] = /^([0-9a-f-]{36}):(\d+)$/.exec(startTime) ?? []
  return boot === undefined ? { boot: '', at: Date.parse(startTime) } : { boot, at: Number(ticks) }
}

const readProcess = (pid: number): ProcessReading => {
  if (!Number.isSafeInteger(pid) || pid <= 0) return { kind: 'gone' }
  if (process.platform === 'linux') return readLinuxProcess(pid)
  if (process.platform === 'darwin') return readDarwinProcess(pid)
  return { kind: 'cannot-tell' }
}
