import type { ProcessRow } from './process-row.ts'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { AppError } from '../domain/errors.ts'
import { linuxStartTime, readBootId } from './identity-linux.ts'
import { isForbidden, isGone, parseStat } from './proc.ts'
import { parsePsTable } from './table-darwin.ts'
import { createTimeSlice, type TimeSlice } from './time-slice.ts'

/** Every visible process on this host. Throws if they can't be listed. */
export const processTable = async (slice = createTimeSlice()): Promise<readonly ProcessRow[]> => {
  if (process.platform === 'linux') return linuxTable(slice)
  if (process.platform === 'darwin') return darwinTable()
  throw new AppError('unsupported', `processes can't be listed on ${process.platform}`)
}

/** The pids in /proc. If it can't be read, that is "unknown", never "no processes". */
export const listProcPids = (): readonly number[] => {
  try {
    const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
    // Another pid namespace's /proc, or an empty directory, would list no processes.
    if (!pids.includes(process.pid)) throw new Error("this process itself isn't listed")
    return pids
  } catch (error) {
    throw new AppError('unexpected', "couldn't read the process list in /proc", {
      cause: error,
      remedy: 'mount /proc for this user and try again',
    })
  }
}

/** In slices: anyone can start any number of processes. */
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

/** Undefined for an unused or unreadable pid, and for threads of the kernel or a process. */
export const linuxRow = (pid: number, bootId = readBootId()): ProcessRow | undefined => {
  const stat = readStat(pid)
  if (stat === undefined || stat.kernelThread || stat.thread) return undefined
  const { command, parentPid, processGroup, session, zombie, stopped, cpuTicks } = stat
  const identity = { pid, startTime: linuxStartTime(bootId, stat.startTicks) }
  return { identity, command, parentPid, processGroup, session, zombie, stopped, cpuTicks }
}

const readStat = (pid: number): ReturnType<typeof parseStat> => {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    // hidepid=1 forbids other users' entries; we never signal those
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
