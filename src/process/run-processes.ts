import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cgroupMembers } from './cgroup.ts'
import { readBootId } from './identity-linux.ts'
import { isForbidden, isGone } from './proc.ts'
import { lockLimitOf, type RunMark, runVariable } from './run-mark.ts'
import type { ProcessRow } from './process-row.ts'
import { linuxRow, listProcPids } from './table.ts'
import { createTimeSlice } from './time-slice.ts'

export type RunProcesses = {
  /** Each was alive when it was looked at. One that forks and ends all the time may have ended since. */
  readonly rows: readonly ProcessRow[]
  /** False when processes were started faster than they could be looked at: then one may have been missed. */
  readonly complete: boolean
}

export type SearchOptions = {
  /** Called right when a process is found: a process that forks and ends all the time lives for 100 µs. */
  readonly onFound?: (row: ProcessRow) => void
  readonly slice?: ReturnType<typeof createTimeSlice>
}

/**
 * The live processes that carry one of these marks. Only those that we may read: ours. macOS shows none of the marks, so
 * there the answer is empty and says nothing.
 *
 * A list of /proc alone never shows a process that forks and ends all the time: whoever is on it has ended by the time
 * we look. So after the list come those that were started since, newest first, until nobody has been started since the
 * last look. Then everybody who is alive at that moment has been looked at while alive.
 */
export const processesOfRuns = async (
  marks: readonly RunMark[],
  { onFound, slice = createTimeSlice() }: SearchOptions = {},
): Promise<RunProcesses> => {
  if (process.platform !== 'linux' || marks.length === 0) return { rows: [], complete: true }
  const limits = new Set(marks.map(({ id }) => lockLimitOf(id)))
  // As bytes: the environment is read as such.
  const variables = new Set(marks.map(({ id }) => Buffer.from(`${runVariable}=${id}`).toString('latin1')))
  const members = new Set(marks.flatMap(({ cgroup }) => (cgroup === undefined ? [] : cgroupMembers(cgroup))))
  const bootId = readBootId()
  const found = new Map<number, ProcessRow>()
  const seen = new Set<number>()
  const unmarked: ProcessRow[] = []
  const take = (row: ProcessRow): void => {
    found.set(row.identity.pid, row)
    onFound?.(row)
  }
  const lookAt = async (pids: readonly number[]): Promise<void> => {
    for (const pid of pids) {
      seen.add(pid)
      // Before the marks are read: a pid that changes hands in between then has another start time.
      const row = linuxRow(pid, bootId)
      if (row !== undefined && !row.zombie) {
        const limit = lockLimit(pid)
        if (members.has(pid) || (limit !== undefined && limits.has(limit))) take(row)
        else if (limit !== undefined) unmarked.push(row)
      }
      if (slice.isOver()) await slice.next()
    }
  }
  /** Separately, since the kernel may take its time over the memory of a process. */
  const readEnvironments = async (): Promise<void> => {
    for (const row of unmarked.splice(0)) {
      if ((await environmentOf(row.identity.pid)).some((one) => variables.has(one))) take(row)
      if (slice.isOver()) await slice.next()
    }
  }

  let newest = newestPid()
  await lookAt(listProcPids())
  let complete = false
  for (let look = 0, reads = 0; look < (newest === undefined ? MOST_LISTS : MOST_LOOKS); look += 1) {
    const now = newestPid()
    const started = startedSince(newest, now, seen)
    newest = now
    complete = started.length === 0
    await lookAt(started)
    if (!complete) continue
    if (unmarked.length === 0 || reads === MOST_READS) break
    reads += 1
    await readEnvironments()
  }
  await readEnvironments()
  return { rows: [...found.values()], complete }
}

/** A look at the newest process takes 100 µs. */
const MOST_LOOKS = 5_000
/** A list takes 1 ms for 1,000 processes. */
const MOST_LISTS = 40
/** How often those that were started while environments were read have theirs read, too. */
const MOST_READS = 40

/**
 * The number that the kernel gave out last; undefined where it does not tell. Only ever compared with another one: it
 * may be a thread's, and nobody may have it any more.
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
  // Everybody again when the numbers have begun from below, where some of those seen may be others' now.
  if (now < before || now - before > MOST_AT_ONCE) return listProcPids()
  return Array.from({ length: now - before }, (_, n) => now - n)
}

const MOST_AT_ONCE = 1_000

/** Undefined when it has ended or we may not look, and then nor at its environment. */
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
