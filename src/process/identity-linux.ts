import { readFileSync } from 'node:fs'
import { hasCode } from '../domain/error-code.ts'
import type { ProcessReading } from './process-reading.ts'
import { isGone, parseStat } from './proc.ts'

/**
 * Boot id + clock ticks since boot (field 22 of stat): ticks alone repeat after a reboot, and a wall-clock time shifts
 * when the clock is set.
 */
export const readLinuxProcess = (pid: number): ProcessReading => {
  try {
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    if (stat === undefined) return { kind: 'cannot-tell' }
    return {
      kind: 'there',
      startTime: linuxStartTime(readBootId(), stat.startTicks),
      zombie: stat.zombie,
    }
  } catch (error) {
    // Without /proc, or with hidepid=2, ENOENT proves nothing, so ask the kernel another way.
    return isGone(error) && isUnusedPid(pid) ? { kind: 'gone' } : { kind: 'cannot-tell' }
  }
}

export const readLinuxTerminal = (pid: number): 'yes' | 'no' | 'unknown' => {
  try {
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return stat === undefined ? 'unknown' : stat.terminal ? 'yes' : 'no'
  } catch {
    return 'unknown'
  }
}

/** Undefined if it is gone, or unknown. */
export const parentOf = (pid: number): number | undefined => {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.parentPid
  } catch {
    return undefined
  }
}

export const readBootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()

export const linuxStartTime = (bootId: string, startTicks: string): string => `${bootId}:${startTicks}`

const isUnusedPid = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return hasCode(error, 'ESRCH')
  }
}
