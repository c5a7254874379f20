import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../domain/error-code.ts'
import type { Clock } from '../domain/clock.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { cgroupMembers, isPopulated, killCgroup, removeCgroup } from './cgroup.ts'
import { identifySync, liveness } from './identity.ts'
import type { RunMark } from './run-mark.ts'
import { processTable } from './table.ts'
import type { ProcessRow } from './process-row.ts'
import { processesOfRuns, type RunProcesses } from './run-processes.ts'
import { createTimeSlice } from './time-slice.ts'
import { collectTree, isSame, selfAndAncestors } from './tree.ts'

export type KillOutcome =
  | { readonly outcome: 'dead' }
  /** The pid is somebody else's, or our own or an ancestor's: nothing was signalled */
  | { readonly outcome: 'not-ours' }
  /** The live ones that can be named; none when they end before anybody can, or when another pid namespace hides them */
  | { readonly outcome: 'survivors'; readonly identities: readonly ProcessIdentity[] }

export type KillOptions = {
  /** How long a process may take to end by itself after SIGTERM */
  readonly graceMs: number
  readonly clock: Clock
  /** How long the kernel may take after SIGKILL (a process in a disk wait takes its time) */
  readonly confirmMs?: number
  /**
   * Also end the group of a leader that has ended already. Only for a child we started ourselves a moment ago:
   * a pid recorded long ago may have become another group's name by now.
   */
  readonly leaderMayBeGone?: boolean
}

/** Ends a process and everything that came from it, and says so only when it is true. */
export const killTree = async (identity: ProcessIdentity, options: KillOptions): Promise<KillOutcome> => {
  const untouchable = selfAndAncestors(await processTable(), process.pid)
  if (identity.pid <= 1 || untouchable.has(identity.pid)) return { outcome: 'not-ours' }
  const holder = identifySync(identity.pid)
  if (holder !== undefined && !isSame(holder, identity)) return { outcome: 'not-ours' }
  if (holder === undefined) {
    if (liveness(identity) !== 'dead') return { outcome: 'survivors', identities: [identity] }
    if (options.leaderMayBeGone !== true) return { outcome: 'dead' }
  }
  return endAll({ known: [identity], find: async () => ({ rows: [], complete: true }), untouchable }, options)
}

/** Ends all that a run of an agent left, wherever it has gone: whatever bears the mark, and what came from that. */
export const killRun = async (marks: readonly RunMark[], options: KillOptions): Promise<KillOutcome> => {
  const untouchable = selfAndAncestors(await processTable(), process.pid)
  const cgroups = marks.flatMap(({ cgroup }) => cgroup ?? [])
  const find = (onFound?: (row: ProcessRow) => void): Promise<RunProcesses> =>
    processesOfRuns(marks, onFound === undefined ? {} : { onFound })
  const killed = await endAll({ known: [], find, untouchable, cgroups }, options)
  if (killed.outcome === 'dead') for (const cgroup of cgroups) removeCgroup(cgroup)
  return killed
}

/**
 * Lets processes that were stopped continue, with whatever else is stopped in a session that is theirs alone: git waits
 * for its ssh. For those that a crash caught between the SIGSTOP and the SIGKILL of `endAll`.
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

export type KillTarget = {
  readonly known: readonly ProcessIdentity[]
  /** Asked before every round: members that no tree shows. Calls `onFound` as soon as it finds one. */
  readonly find: (onFound?: (row: ProcessRow) => void) => Promise<RunProcesses>
  readonly untouchable: ReadonlySet<number>
  readonly cgroups?: readonly string[]
}

/** The one place that signals. */
export const endAll = async (target: KillTarget, options: KillOptions): Promise<KillOutcome> => {
  const { find, untouchable, cgroups = [] } = target
  const { graceMs, clock, confirmMs = 5_000 } = options
  /** The dead among them may still lead to relatives. */
  const known = new Map(target.known.map((identity) => [identity.pid, identity]))
  const living = new Map(known)
  let foundIn = new Set<number>()
  let ours: ReadonlySet<number> = new Set()
  const isLeft = async (): Promise<boolean> => (await isAnyLeft(living)) || cgroups.some(isPopulated)
  /** Answers who came since the last look: one that forks and ends all the time is never seen alive twice. */
  const look = async (onFound?: (row: ProcessRow) => void): Promise<Look> => {
    const { rows: found, complete } = await find(onFound)
    const rows = await processTable()
    await forgetGone(known, rows)
    ours = groupsOf(rows, untouchable)
    // A session begins with a process that the run started and holds nobody but its descendants, unless it is our own.
    foundIn = new Set(found.filter(({ session }) => !ours.has(session)).map(({ processGroup }) => processGroup))
    const members = [...known.values(), ...found.map(({ identity }) => identity)]
    const seen = [...members, ...collectTree(rows, members)]
    const fresh = seen.filter(({ pid, startTime }) => !untouchable.has(pid) && known.get(pid)?.startTime !== startTime)
    for (const member of fresh) {
      known.set(member.pid, member)
      living.set(member.pid, member)
    }
    return { fresh, complete }
  }
  const isOver = async ({ fresh, complete }: Look): Promise<boolean> =>
    complete && fresh.length === 0 && !(await isLeft())

  if (await isOver(await look())) return { outcome: 'dead' }
  await signalAll(living.values(), 'SIGTERM')
  await untilFalse(isLeft, graceMs, clock)
  // What a trap or a supervisor started in the meantime is found by looking again, as often as something comes back.
  for (let round = 0; ; round += 1) {
    if (await isOver(await look())) return { outcome: 'dead' }
    if (round === KILL_ROUNDS) return { outcome: 'survivors', identities: await notDead(living.values()) }
    await killFrozen({ living, look, untouchable })
    await killGroups(await processTable(), { known, foundIn, ours })
    for (const cgroup of cgroups) killWhole(cgroup, untouchable)
    await untilFalse(isLeft, confirmMs, clock)
  }
}

type Look = { readonly fresh: readonly ProcessIdentity[]; readonly complete: boolean }

type Frozen = {
  readonly living: ReadonlyMap<number, ProcessIdentity>
  readonly look: (onFound: (row: ProcessRow) => void) => Promise<Look>
  readonly untouchable: ReadonlySet<number>
}

/**
 * Stops everyone before it kills anyone: a stopped process cannot fork, start another in place of one that died, or hand
 * over to a child in a session of its own. Whatever happens, nobody stays stopped.
 */
const killFrozen = async ({ living, look, untouchable }: Frozen): Promise<void> => {
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
      const { fresh, complete } = await look(({ identity }) => stop(identity))
      if (complete && fresh.length === 0) break
    }
  } finally {
    await signalAll([...stopped.values(), ...living.values()], 'SIGKILL')
    // One that we can no longer read may be anybody's by now: not killed, and not left stopped either.
    for (const identity of stopped.values()) if (liveness(identity) === 'cannot-tell') signal(identity.pid, 'SIGCONT')
  }
}

/** Each round stops one more generation of relatives without a mark. */
const FREEZE_ROUNDS = 10

/** Whoever is gone and has left nobody behind: one that forks all the time would make this a list of thousands. */
const forgetGone = async (known: Map<number, ProcessIdentity>, rows: readonly ProcessRow[]): Promise<void> => {
  const named = new Set(rows.flatMap((row) => [row.identity.pid, row.parentPid, row.processGroup, row.session]))
  const slice = createTimeSlice()
  for (const [pid, identity] of known) {
    if (!named.has(pid) && liveness(identity) === 'dead') known.delete(pid)
    if (slice.isOver()) await slice.next()
  }
}

/** Forgets the dead on the way, so that each is asked about once. */
const isAnyLeft = async (living: Map<number, ProcessIdentity>): Promise<boolean> => {
  const slice = createTimeSlice()
  for (const [pid, identity] of living) {
    if (liveness(identity) !== 'dead') return true
    living.delete(pid)
    if (slice.isOver()) await slice.next()
  }
  return false
}

/**
 * The kernel signals a group in one step, so that a member cannot fork in between. Only a group that bears the pid of one
 * of those we end, or that one of them was found in, and only while nobody else has that pid: it is theirs as long as one
 * of them is in it.
 */
const killGroups = async (rows: readonly ProcessRow[], { known, foundIn, ours }: Groups): Promise<void> => {
  const slice = createTimeSlice()
  const led = rows.map(({ processGroup }) => processGroup).filter((group) => known.has(group))
  for (const group of new Set([...led, ...foundIn])) {
    if (group <= 1 || ours.has(group)) continue
    // Without a record of its leader: one that ended before anybody looked, so nobody may have its pid now.
    const leader = known.get(group) ?? { pid: group, startTime: 'not seen' }
    const holder = identifySync(group)
    if (holder === undefined ? liveness(leader) === 'dead' : isSame(holder, leader)) signal(-group, 'SIGKILL')
    if (slice.isOver()) await slice.next()
  }
}

type Groups = {
  readonly known: ReadonlyMap<number, ProcessIdentity>
  readonly foundIn: ReadonlySet<number>
  /** The groups and sessions that we and our ancestors are in. */
  readonly ours: ReadonlySet<number>
}

const groupsOf = (rows: readonly ProcessRow[], pids: ReadonlySet<number>): ReadonlySet<number> =>
  new Set(
    rows
      .filter(({ identity }) => pids.has(identity.pid))
      .flatMap(({ processGroup, session }) => [processGroup, session]),
  )

/** Not one that holds ourselves: a server that an agent of another one started is in that agent's cgroup. */
const killWhole = (cgroup: string, untouchable: ReadonlySet<number>): void => {
  if (!cgroupMembers(cgroup).some((pid) => untouchable.has(pid))) killCgroup(cgroup)
}

/** A tree that still grows after this many rounds of SIGKILL is a fork bomb, and the caller must hear of it. */
const KILL_ROUNDS = 5

const notDead = async (identities: Iterable<ProcessIdentity>): Promise<readonly ProcessIdentity[]> => {
  const slice = createTimeSlice()
  const left: ProcessIdentity[] = []
  for (const identity of identities) {
    if (liveness(identity) !== 'dead') left.push(identity)
    if (slice.isOver()) await slice.next()
  }
  return left
}

const signalAll = async (identities: Iterable<ProcessIdentity>, name: Signal): Promise<void> => {
  const slice = createTimeSlice()
  for (const identity of identities) {
    signalOne(identity, name)
    if (slice.isOver()) await slice.next()
  }
}

type Signal = 'SIGTERM' | 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'

/** True when it got the signal. */
const signalOne = (identity: ProcessIdentity, name: Signal): boolean =>
  // Looked at right before the signal: a pid may have changed hands since it was found, and one that cannot be read
  // may be anybody's.
  identity.pid > 1 && liveness(identity) === 'alive' && signal(identity.pid, name)

const signal = (target: number, name: Signal): boolean => {
  try {
    return process.kill(target, name)
  } catch (error) {
    // ESRCH: ended by itself. EPERM: changed its user; it stays among the survivors.
    if (!hasCode(error, 'ESRCH') && !hasCode(error, 'EPERM')) throw error
    return false
  }
}

/** Asks often at first, since most programs end within milliseconds of SIGTERM. */
const untilFalse = async (isLeft: () => Promise<boolean>, limitMs: number, clock: Clock): Promise<void> => {
  const deadline = clock() + limitMs
  for (let pause = 1; (await isLeft()) && clock() < deadline; pause = Math.min(25, pause * 2)) await delay(pause)
}
