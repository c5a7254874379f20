import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cgroupMembers } from './cgroup.ts'
import { readBootId } from './identity-linux.ts'
import { isForbidden, isGone } from './proc.ts'
import { LEAST_LOCK_LIMIT, lockLimitOf, type RunMark, runVariable } from './run-mark.ts'
import type { ProcessRow } from './process-row.ts'
import { linuxRow, listProcPids } from './table.ts'
import { createTimeSlice } from './time-slice.ts'

export type RunProcesses = {
  /** Each was alive when checked, but a process that keeps forking may have exited since. */
  readonly rows: readonly ProcessRow[]
  /** False if processes started faster than they could be checked, so one may be missing. */
  readonly complete: boolean
}

export type SearchOptions = {
  /** Called at once for each process found: one that keeps forking lives for 100 µs. */
  readonly onFound?: (row: ProcessRow) => void
  readonly slice?: ReturnType<typeof createTimeSlice>
}

/**
 * The live processes with one of these marks that we may read: our own. macOS shows no marks, so there the result is
 * empty and means nothing.
 *
 * A process that keeps forking and exiting never shows up in a list of /proc: by the time we look, it has exited. So
 * after the list, check the processes started since, newest first, until none has started since the last look. Then
 * every process alive at that moment has been checked while alive.
 */
export const processesOfRuns = async (
  marks: readonly RunMark[],
  { onFound, slice = createTimeSlice() }: SearchOptions = {},
): Promise<RunProcesses> => {
  if (process.platform !== 'linux' || marks.length === 0) return { rows: [], complete: true }
  const limits = new Set(marks.map(({ id }) => lockLimitOf(id)))
  // As bytes, like the environments read below.
  const variables = new Set(marks.map(({ id }) => Buffer.from(`${runVariable}=${id}`).toString('latin1')))
  const members = new Set(marks.flatMap(({ cgroup }) => (cgroup === undefined ? [] : cgroupMembers(cgroup))))
  const bootId = readBootId()
  const found = new Map<number, ProcessRow>()
  const seen = new Set<number>()
  const unmarked: ProcessRow[] = []
  const addFound = (row: ProcessRow): void => {
    found.set(row.identity.pid, row)
    onFound?.(row)
  }
  const check = async (pids: readonly number[]): Promise<void> => {
    for (const pid of pids) {
      seen.add(pid)
      // Before the marks: a pid reused in between then has another start time.
      const row = linuxRow(pid, bootId)
      if (row !== undefined && !row.zombie) {
        const limit = lockLimit(pid)
        if (members.has(pid) || (limit !== undefined && limits.has(limit))) addFound(row)
        else if (limit !== undefined) unmarked.push(row)
      }
      if (slice.isOver()) await slice.next()
    }
  }
  /** Separately, since reading a process's memory may be slow. */
  const readEnvironments = async (): Promise<void> => {
    for (const row of unmarked.splice(0)) {
      if ((await environmentOf(row.identity.pid)).some((one) => variables.has(one))) addFound(row)
      if (slice.isOver()) await slice.next()
    }
  }

  let newest = newestPid()
  await check(listProcPids())
  let complete = false
  for (let look = 0, reads = 0; look < (newest === undefined ? MAX_LISTS : MAX_LOOKS); look += 1) {
    const now = newestPid()
    const started = startedSince(newest, now, seen)
    newest = now
    complete = started.length === 0
    await check(started)
    if (!complete) continue
    if (unmarked.length === 0 || reads === MAX_READS) break
    reads += 1
    await readEnvironments()
  }
  await readEnvironments()
  return { rows: [...found.values()], complete }
}

/** Checking the newest process takes 100 µs. */
const MAX_LOOKS = 5_000
/** Listing takes 1 ms for 1,000 processes. */
const MAX_LISTS = 40
/** How often to also read the environments of processes started meanwhile. */
const MAX_READS = 40

/**
 * The last pid the kernel assigned; undefined if unavailable. Use it only to compare: it may be a thread's, or already
 * unused.
 */
const newestPid = (): number | undefined => {
  try {
    const pid = Number(readFileSync('/proc/sys/kernel/ns_last_pid', 'latin1'))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

const startedSince = (
  before: number | undefined,
  now: number | undefined,
  seen: ReadonlySet<number>,
): readonly number[] => {
  if (before === undefined || now === undefined) return listProcPids().filter((pid) => !seen.has(pid))
  // Check all again after the pids wrapped around, since some of those seen may have been reused.
  if (now < before || now - before > MAX_NEW_PIDS) return listProcPids()
  return Array.from({ length: now - before }, (_, n) => now - n)
}

const MAX_NEW_PIDS = 1_000

/** Whether this process was started by a run, an agent of the fleet or a script, however it got here. Linux only. */
export const isInsideRun = (): boolean => {
  const limit = process.platform === 'linux' ? Number(lockLimit(process.pid)) : Number.NaN
  return limit >= LEAST_LOCK_LIMIT && limit < 2 * LEAST_LOCK_LIMIT
}

/** Undefined if it has exited or is unreadable; then so is its environment. */
const lockLimit = (pid: number): string | undefined => {
  try {
    return /^Max file locks +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1] ?? ''
  } catch (error) {
    if (isGone(error) || isForbidden(error)) return undefined
    throw error
  }
}

const environmentOf = async (pid: number): Promise<readonly string[]> => {
  try {
    return (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0')
  } catch (error) {
    if (isGone(error) || isForbidden(error)) return []
    throw error
  }
}
