import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cgroupMembers } from './cgroup.ts'
import { readBootId } from './identity-linux.ts'
import { isForbidden, isGone } from './proc.ts'
import { linuxRow, listProcPids } from './table.ts'
import type { ProcessRow } from './process-row.ts'

/**
 * What ties every process of a run, or of a script of the repository, to it. An agent's child that runs `env -i setsid` and forks twice has lost its
 * environment, session and parent; it still has the limits it inherited, and it is still in its cgroup.
 */
export type RunMark = {
  /** Different for every run on this machine. */
  readonly id: string
  /** A cgroup of this run alone, where we may make one. */
  readonly cgroup: string | undefined
}

export const runMarkId = (home: string, message: string, attempt: number): string =>
  `${prefixOf(home)}.${message}.${attempt}`

/**
 * For the repository's scripts of a worktree: by its id they are found again without a record. No cgroup, which would
 * need one: setup is code that a person approved, so nobody expects it to shed its mark.
 */
export const scriptMark = (home: string, environment: string, kind: 'setup' | 'teardown'): RunMark => ({
  id: `${prefixOf(home)}.${kind}.${environment}`,
  cgroup: undefined,
})

const prefixOf = (home: string): string => createHash('sha256').update(home).digest('hex').slice(0, 12)

/** In the environment of the agent and of whatever it starts. */
export const runVariable = 'COPPICE_RUN'

/**
 * The same as a number: the soft limit on file locks. The kernel has ignored that limit since 2.4.25, every child
 * inherits it, and a program has to reset it on purpose to lose it.
 */
export const lockLimitOf = (id: string): string =>
  String(2 ** 40 + createHash('sha256').update(id).digest().readUIntBE(0, 5))

/**
 * Shell that marks the shell itself: arguments are the cgroup (or nothing) and the limit. `-w` is dash's and BusyBox's
 * letter for file locks, `-x` bash's. What fails is not fatal: each mark stands alone.
 */
export const MARK_SCRIPT =
  '{ [ -z "$1" ] || echo 0 > "$1/cgroup.procs"; ulimit -S -w "$2" || ulimit -S -x "$2"; } 2>/dev/null; shift 2; '

export const markArguments = ({ id, cgroup }: RunMark): readonly [string, string] => [cgroup ?? '', lockLimitOf(id)]

/**
 * The processes that carry one of these marks. Only those that we may read: ours. macOS shows none of the marks, so there
 * the answer is empty and says nothing.
 */
export const processesOfRuns = async (marks: readonly RunMark[]): Promise<readonly ProcessRow[]> => {
  if (process.platform !== 'linux' || marks.length === 0) return []
  const limits = new Set(marks.map(({ id }) => lockLimitOf(id)))
  // As bytes: the environment is read as such.
  const variables = new Set(marks.map(({ id }) => Buffer.from(`${runVariable}=${id}`).toString('latin1')))
  const bootId = readBootId()
  const found = new Map<number, ProcessRow>()
  for (const pid of marks.flatMap(({ cgroup }) => (cgroup === undefined ? [] : cgroupMembers(cgroup)))) {
    const row = linuxRow(pid, bootId)
    if (row !== undefined) found.set(pid, row)
  }
  const seen = new Set<number>(found.keys())
  // Again while somebody is gone before we could look: a process that forks and ends all the time is otherwise always
  // where nobody looks any more.
  for (let pass = 0, missed = true; missed && pass < MOST_PASSES; pass += 1) {
    missed = false
    for (const pid of listProcPids().filter((one) => !seen.has(one))) {
      seen.add(pid)
      // Before the marks are read: a pid that changes hands in between then has another start time.
      const row = linuxRow(pid, bootId)
      if (row === undefined) missed = true
      else if (limits.has(lockLimit(pid) ?? '') || (await environmentOf(pid)).some((one) => variables.has(one))) {
        found.set(pid, row)
      }
    }
  }
  return [...found.values()]
}

/** A look at the new pids takes 2 ms, as long as a shell takes to fork: most of these passes see a process in between. */
const MOST_PASSES = 40

const lockLimit = (pid: number): string | undefined => {
  try {
    return /^Max file locks +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1]
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
