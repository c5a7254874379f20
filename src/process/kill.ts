import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../domain/error-code.ts'
import type { Clock } from '../domain/clock.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { cgroupMembers, isPopulated, killCgroup, removeCgroup } from './cgroup.ts'
import { hasTerminal, identifySync, liveness } from './identity.ts'
import type { RunMark } from './run-mark.ts'
import { processTable } from './table.ts'
import type { ProcessRow } from './process-row.ts'
import { processesOfRuns, type RunProcesses } from './run-processes.ts'
import { createTimeSlice } from './time-slice.ts'
import { collectTree, isSame, selfAndAncestors } from './tree.ts'

export type KillOutcome =
  | { readonly outcome: 'dead' }
  /** The pid is another process's, our own or an ancestor's: nothing was signalled */
  | { readonly outcome: 'not-ours' }
  /** The survivors we can identify; empty if they exit too fast, or another pid namespace hides them */
  | { readonly outcome: 'survivors'; readonly identities: readonly ProcessIdentity[] }

export type KillOptions = {
  /** Time to exit after SIGTERM; 0: SIGKILL at once, for what would delete files on SIGTERM */
  readonly graceMs: number
  readonly clock: Clock
  /** Time to die after SIGKILL (slow in a disk wait) */
  readonly confirmMs?: number
  /**
   * Also kill the group of a leader that has already exited. Only for a child we just started: an old pid may belong to
   * another group by now.
   */
  readonly leaderMayBeGone?: boolean
  /**
   * It has lost its session, and so its terminal. If it has one right before a signal, somebody has taken it over (with
   * `reptyr`, for example), and nothing is signalled.
   */
  readonly isOrphan?: boolean
}

/** Kills a process and all its descendants. Reports `dead` only if that is certain. */
export const killTree = async (identity: ProcessIdentity, options: KillOptions): Promise<KillOutcome> => {
  const untouchable = selfAndAncestors(await processTable(), process.pid)
  if (identity.pid <= 1 || untouchable.has(identity.pid)) return { outcome: 'not-ours' }
  const holder = identifySync(identity.pid)
  if (holder !== undefined && !isSame(holder, identity)) return { outcome: 'not-ours' }
  if (holder === undefined) {
    if (liveness(identity) !== 'dead') return { outcome: 'survivors', identities: [identity] }
    if (options.leaderMayBeGone !== true) return { outcome: 'dead' }
  }
  const find = async (): Promise<RunProcesses> => ({ rows: [], complete: true })
  const isTakenOver = (): boolean =>
    options.isOrphan === true && liveness(identity) !== 'dead' && hasTerminal(identity) !== 'no'
  return killAll({ known: [identity], find, untouchable, isTakenOver }, options)
}

/** Kills everything a run left: processes with its mark, and their descendants. */
export const killRun = async (marks: readonly RunMark[], options: KillOptions): Promise<KillOutcome> => {
  const untouchable = selfAndAncestors(await processTable(), process.pid)
  const cgroups = marks.flatMap(({ cgroup }) => cgroup ?? [])
  const find = (onFound?: (row: ProcessRow) => void): Promise<RunProcesses> =>
    processesOfRuns(marks, onFound === undefined ? {} : { onFound })
  const killed = await killAll({ known: [], find, untouchable, cgroups }, options)
  if (killed.outcome === 'dead') for (const cgroup of cgroups) removeCgroup(cgroup)
  return killed
}

/**
 * Resumes stopped processes, and anything stopped in sessions that are theirs alone: git waits for its ssh. For a crash
 * between the SIGSTOP and SIGKILL of `killAll`.
 */
export const continueStopped = async (identities: readonly ProcessIdentity[]): Promise<void> => {
  if (identities.length === 0) return
  const rows = await processTable()
  const ours = groupsOf(rows, selfAndAncestors(rows, process.pid))
  const named = rows.filter(({ identity }) => identities.some((one) => isSame(one, identity)))
  const sessions = new Set(named.map(({ session }) => session).filter((session) => session > 0 && !ours.has(session)))
  const stopped = rows.filter((row) => row.stopped && (named.includes(row) || sessions.has(row.session)))
  await signalAll(
    stopped.map(({ identity }) => identity),
    'SIGCONT',
  )
}

/** Sends SIGUSR1, which makes a tmux server recreate its socket. True if it was sent. */
export const askToReopenSocket = (server: ProcessIdentity): boolean => signalOne(server, 'SIGUSR1')

export type KillTarget = {
  readonly known: readonly ProcessIdentity[]
  /** Called before every round to find members outside the tree. Calls `onFound` for each one at once. */
  readonly find: (onFound?: (row: ProcessRow) => void) => Promise<RunProcesses>
  readonly untouchable: ReadonlySet<number>
  readonly cgroups?: readonly string[]
  /** Asked before each round of signals. If so, it is no longer ours. */
  readonly isTakenOver?: () => boolean
}

/** The only code that sends signals. */
export const killAll = async (target: KillTarget, options: KillOptions): Promise<KillOutcome> => {
  const { find, untouchable, cgroups = [], isTakenOver = () => false } = target
  const { graceMs, clock, confirmMs = 5_000 } = options
  /** Dead ones may still lead to relatives. */
  const known = new Map(target.known.map((identity) => [identity.pid, identity]))
  const living = new Map(known)
  let memberGroups = new Set<number>()
  let ours: ReadonlySet<number> = new Set()
  const isAnyAlive = async (): Promise<boolean> => (await isAnyAliveIn(living)) || cgroups.some(isPopulated)
  /** Returns those new since the last look: a process that keeps forking and exiting is never seen alive twice. */
  const rescan = async (onFound?: (row: ProcessRow) => void): Promise<Rescan> => {
    const { rows: found, complete } = await find(onFound)
    const rows = await processTable()
    await dropDead(known, rows)
    ours = groupsOf(rows, untouchable)
    // A session starts with a process of the run and contains only its descendants, unless it is our own.
    memberGroups = new Set(found.filter(({ session }) => !ours.has(session)).map(({ processGroup }) => processGroup))
    const members = [...known.values(), ...found.map(({ identity }) => identity)]
    const seen = [...members, ...collectTree(rows, members)]
    const fresh = seen.filter(({ pid, startTime }) => !untouchable.has(pid) && known.get(pid)?.startTime !== startTime)
    for (const member of fresh) {
      known.set(member.pid, member)
      living.set(member.pid, member)
    }
    return { fresh, complete }
  }
  const isDone = async ({ fresh, complete }: Rescan): Promise<boolean> =>
    complete && fresh.length === 0 && !(await isAnyAlive())

  if (await isDone(await rescan())) return { outcome: 'dead' }
  if (isTakenOver()) return { outcome: 'not-ours' }
  if (graceMs > 0) {
    await signalAll(living.values(), 'SIGTERM')
    // One that is stopped would get it only then.
    await signalAll(living.values(), 'SIGCONT')
    await untilFalse(isAnyAlive, graceMs, clock)
  }
  // Look again as long as anything new appears: a trap or a supervisor may have started it.
  for (let round = 0; ; round += 1) {
    if (await isDone(await rescan())) return { outcome: 'dead' }
    if (isTakenOver()) return { outcome: 'not-ours' }
    if (round === KILL_ROUNDS) return { outcome: 'survivors', identities: await survivorsOf(living.values()) }
    await stopThenKill({ living, rescan, untouchable })
    await killGroups(await processTable(), { known, memberGroups, ours })
    for (const cgroup of cgroups) killCgroupUnlessOurs(cgroup, untouchable)
    await untilFalse(isAnyAlive, confirmMs, clock)
  }
}

type Rescan = { readonly fresh: readonly ProcessIdentity[]; readonly complete: boolean }

type StopThenKill = {
  readonly living: ReadonlyMap<number, ProcessIdentity>
  readonly rescan: (onFound: (row: ProcessRow) => void) => Promise<Rescan>
  readonly untouchable: ReadonlySet<number>
}

/**
 * Stops all processes before killing any: a stopped process can't fork, restart one that died, or hand over to a child
 * in another session. None stays stopped, even after an error.
 */
const stopThenKill = async ({ living, rescan, untouchable }: StopThenKill): Promise<void> => {
  const stopped = new Map<number, ProcessIdentity>()
  const stop = (identity: ProcessIdentity): void => {
    if (untouchable.has(identity.pid) || stopped.get(identity.pid)?.startTime === identity.startTime) return
    if (signalOne(identity, 'SIGSTOP')) stopped.set(identity.pid, identity)
  }
  const slice = createTimeSlice()
  try {
    for (let round = 0; round < FREEZE_ROUNDS; round += 1) {
      for (const identity of living.values()) {
        stop(identity)
        if (slice.isOver()) await slice.next()
      }
      const { fresh, complete } = await rescan(({ identity }) => stop(identity))
      if (complete && fresh.length === 0) break
    }
  } finally {
    await signalAll([...stopped.values(), ...living.values()], 'SIGKILL')
    // An unreadable pid may be another process's by now: don't kill it, and don't leave it stopped.
    for (const identity of stopped.values()) if (liveness(identity) === 'cannot-tell') signal(identity.pid, 'SIGCONT')
  }
}

/** Each round stops one more generation of unmarked relatives. */
const FREEZE_ROUNDS = 10

/** Drops processes that exited and left no relatives: a constant forker would add thousands. */
const dropDead = async (known: Map<number, ProcessIdentity>, rows: readonly ProcessRow[]): Promise<void> => {
  const named = new Set(rows.flatMap((row) => [row.identity.pid, row.parentPid, row.processGroup, row.session]))
  const slice = createTimeSlice()
  for (const [pid, identity] of known) {
    if (!named.has(pid) && liveness(identity) === 'dead') known.delete(pid)
    if (slice.isOver()) await slice.next()
  }
}

/** Removes the dead, so each is checked once. */
const isAnyAliveIn = async (living: Map<number, ProcessIdentity>): Promise<boolean> => {
  const slice = createTimeSlice()
  for (const [pid, identity] of living) {
    if (liveness(identity) !== 'dead') return true
    living.delete(pid)
    if (slice.isOver()) await slice.next()
  }
  return false
}

/**
 * The kernel signals a group atomically, so no member can fork in between. Only a group that has the pid of one of our
 * targets, or in which one was found, and only while no other process has that pid: the group is theirs as long as one
 * of them is in it.
 */
const killGroups = async (rows: readonly ProcessRow[], { known, memberGroups, ours }: Groups): Promise<void> => {
  const slice = createTimeSlice()
  const led = rows.map(({ processGroup }) => processGroup).filter((group) => known.has(group))
  for (const group of new Set([...led, ...memberGroups])) {
    if (group <= 1 || ours.has(group)) continue
    // Unknown leader: it exited before we looked, so its pid must be unused now.
    const leader = known.get(group) ?? { pid: group, startTime: 'not seen' }
    const holder = identifySync(group)
    if (holder === undefined ? liveness(leader) === 'dead' : isSame(holder, leader)) signal(-group, 'SIGKILL')
    if (slice.isOver()) await slice.next()
  }
}

type Groups = {
  readonly known: ReadonlyMap<number, ProcessIdentity>
  readonly memberGroups: ReadonlySet<number>
  /** Groups and sessions of ourselves and our ancestors. */
  readonly ours: ReadonlySet<number>
}

const groupsOf = (rows: readonly ProcessRow[], pids: ReadonlySet<number>): ReadonlySet<number> =>
  new Set(
    rows
      .filter(({ identity }) => pids.has(identity.pid))
      .flatMap(({ processGroup, session }) => [processGroup, session]),
  )

/** Unless we are in it: a server started by another server's agent is in that agent's cgroup. */
const killCgroupUnlessOurs = (cgroup: string, untouchable: ReadonlySet<number>): void => {
  if (!cgroupMembers(cgroup).some((pid) => untouchable.has(pid))) killCgroup(cgroup)
}

/** A tree that still grows after this many SIGKILL rounds is a fork bomb, which the caller must know. */
const KILL_ROUNDS = 5

const survivorsOf = async (identities: Iterable<ProcessIdentity>): Promise<readonly ProcessIdentity[]> => {
  const slice = createTimeSlice()
  const survivors: ProcessIdentity[] = []
  for (const identity of identities) {
    if (liveness(identity) !== 'dead') survivors.push(identity)
    if (slice.isOver()) await slice.next()
  }
  return survivors
}

const signalAll = async (identities: Iterable<ProcessIdentity>, name: Signal): Promise<void> => {
  const slice = createTimeSlice()
  for (const identity of identities) {
    signalOne(identity, name)
    if (slice.isOver()) await slice.next()
  }
}

type Signal = 'SIGTERM' | 'SIGSTOP' | 'SIGCONT' | 'SIGKILL' | 'SIGUSR1'

/** True if the signal was sent. */
const signalOne = (identity: ProcessIdentity, name: Signal): boolean =>
  // Checked right before the signal: the pid may have been reused, and an unreadable one may be anyone's.
  identity.pid > 1 && liveness(identity) === 'alive' && signal(identity.pid, name)

const signal = (target: number, name: Signal): boolean => {
  try {
    return process.kill(target, name)
  } catch (error) {
    // ESRCH: it exited. EPERM: it changed users, and counts as a survivor.
    if (!hasCode(error, 'ESRCH') && !hasCode(error, 'EPERM')) throw error
    return false
  }
}

/** Polls often at first: most programs exit within milliseconds of SIGTERM. */
const untilFalse = async (condition: () => Promise<boolean>, limitMs: number, clock: Clock): Promise<void> => {
  const deadline = clock() + limitMs
  for (let pause = 1; (await condition()) && clock() < deadline; pause = Math.min(25, pause * 2)) await delay(pause)
}
