import { readFileSync } from 'node:fs'
import { hasCode } from '../domain/error-code.ts'
import type { ProcessReading } from './process-reading.ts'
import { isGone, parseStat } from './proc.ts'

/**
 * Start time = boot id + clock ticks since that boot (field 22 of stat): ticks alone repeat after a reboot,
 * and a wall-clock start date shifts when the clock is set.
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
    // Without /proc, and with hidepid=2 for foreign processes, ENOENT says nothing: the kernel is asked a second way.
    return isGone(error) && kernelKnowsNone(pid) ? { kind: 'gone' } : { kind: 'cannot-tell' }
  }
}

export const readBootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()

export const linuxStartTime = (bootId: string, startTicks: string): string => `${bootId}:${startTicks}`

const kernelKnowsNone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return hasCode(error, 'ESRCH')
  }
}
