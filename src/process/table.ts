import type { ProcessRow } from './process-row.ts'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { AppError } from '../domain/errors.ts'
import { linuxStartTime, readBootId } from './identity-linux.ts'
import { isForbidden, isGone, parseStat } from './proc.ts'
import { parsePsTable } from './table-darwin.ts'
import { createTimeSlice, type TimeSlice } from './time-slice.ts'

/** Every process of this host that can be seen. Throws when the question cannot be answered at all. */
export const processTable = async (slice = createTimeSlice()): Promise<readonly ProcessRow[]> => {
  if (process.platform === 'linux') return linuxTable(slice)
  if (process.platform === 'darwin') return darwinTable()
  throw new AppError('unsupported', `processes cannot be listed on ${process.platform}`)
}

/** The numbers in /proc. An unreadable /proc is "cannot tell", never "no processes". */
export const listProcPids = (): readonly number[] => {
  try {
    const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
    // A /proc of another pid namespace, or an empty directory in its place, would answer "nobody".
    if (!pids.includes(process.pid)) throw new Error('this process itself is not listed')
    return pids
  } catch (error) {
    throw new AppError('unexpected', 'the list of processes in /proc cannot be read', {
      cause: error,
      remedy: 'mount /proc for this user and try again',
    })
  }
}

/** In slices: how many processes there are is up to whoever starts them. */
const linuxTable = async (slice: TimeSlice): Promise<readonly ProcessRow[]> => {
  const bootId = readBootId()
  const rows: ProcessRow[] = []
  for (const pid of listProcPids()) {
    const row = linuxRow(pid, bootId)
    if (row !== undefined) rows.push(row)
    if (slice.isOver()) await slice.next()
  }
  return rows
}

/** Undefined when nobody has this pid, when we may not look, and for a thread, of the kernel or of a process. */
export const linuxRow = (pid: number, bootId = readBootId()): ProcessRow | undefined => {
  const stat = readStat(pid)
  if (stat === undefined || stat.kernelThread || stat.thread) return undefined
  const { command, parentPid, processGroup, session, zombie, stopped } = stat
  const identity = { pid, startTime: linuxStartTime(bootId, stat.startTicks) }
  return { identity, command, parentPid, processGroup, session, zombie, stopped }
}

const readStat = (pid: number): ReturnType<typeof parseStat> => {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    // hidepid=1 forbids foreign entries; those are never ours to signal
    if (isGone(error) || isForbidden(error)) return undefined
    throw error
  }
}

const darwinTable = async (): Promise<readonly ProcessRow[]> => {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-axo', 'pid=,ppid=,pgid=,stat=,lstart=,comm='], {
    env: { LC_ALL: 'C', TZ: 'UTC' },
    maxBuffer: 16 * 1024 * 1024,
  })
  return parsePsTable(stdout)
}
