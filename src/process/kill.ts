import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../domain/error-code.ts'
import type { Clock } from '../domain/clock.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { cgroupMembers, isPopulated, killCgroup, removeCgroup } from './cgroup.ts'
import { identifySync, liveness } from './identity.ts'
import { processesOfRuns, type RunMark } from './run-mark.ts'
import { processTable } from './table.ts'
import type { ProcessRow } from './process-row.ts'
import { collectTree, isSame, selfAndAncestors } from './tree.ts'

export type KillOutcome =
  | { readonly outcome: 'dead' }
  /** The pid is somebody else's, or our own or an ancestor's: nothing was signalled */
  | { readonly outcome: 'not-ours' }
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
  return endAll({ known: [identity], find: async () => [], untouchable }, options)
}

/** Ends all that a run of an agent left, wherever it has gone: whatever bears the mark, and what came from that. */
export const killRun = async (marks: readonly RunMark[], options: KillOptions): Promise<KillOutcome> => {
  const untouchable = selfAndAncestors(await processTable(), process.pid)
  const cgroups = marks.flatMap(({ cgroup }) => cgroup ?? [])
  const killed = await endAll({ known: [], find: () => processesOfRuns(marks), untouchable, cgroups }, options)
  if (killed.outcome === 'dead') for (const cgroup of cgroups) removeCgroup(cgroup)
  return killed
}

export type KillTarget = {
  readonly known: readonly ProcessIdentity[]
  /** Asked before every round: members that no tree shows. */
  readonly find: () => Promise<readonly ProcessRow[]>
  readonly untouchable: ReadonlySet<number>
  readonly cgroups?: readonly string[]
}

/** The one place that signals. */
export const endAll = async (target: KillTarget, options: KillOptions): Promise<KillOutcome> => {
  const { find, untouchable, cgroups = [] } = target
  const { graceMs, clock, confirmMs = 5_000 } = options
  const known = new Map(target.known.map((identity) => [identity.pid, identity]))
  let foundIn = new Set<number>()
  let ours: ReadonlySet<number> = new Set()
  const isLeft = (): boolean => notDead([...known.values()]).length > 0 || cgroups.some(isPopulated)
  /** Answers who came since the last look: one that forks and ends all the time is never seen alive twice. */
  const look = async (): Promise<readonly ProcessIdentity[]> => {
    const found = await find()
    const rows = await processTable()
    forgetGone(known, rows)
    ours = groupsOf(rows, untouchable)
    // A session begins with a process that the run started and holds nobody but its descendants, unless it is our own.
    foundIn = new Set(found.filter(({ session }) => !ours.has(session)).map(({ processGroup }) => processGroup))
    const members = [...known.values(), ...found.map(({ identity }) => identity)]
    const seen = [...members, ...collectTree(rows, members)]
    const fresh = seen.filter(({ pid, startTime }) => !untouchable.has(pid) && known.get(pid)?.startTime !== startTime)
    for (const member of fresh) known.set(member.pid, member)
    return fresh
  }

  const first = await look()
  if (first.length === 0 && !isLeft()) return { outcome: 'dead' }
  signalAll([...known.values()], 'SIGTERM')
  await untilFalse(isLeft, graceMs, clock)
  // What a trap or a supervisor started in the meantime is found by looking again, as often as something comes back.
  for (let round = 0; ; round += 1) {
    const fresh = await look()
    if (fresh.length === 0 && !isLeft()) return { outcome: 'dead' }
    if (round === KILL_ROUNDS)
      return { outcome: 'survivors', identities: unique([...fresh, ...notDead([...known.values()])]) }
    signalAll([...known.values()], 'SIGKILL')
    killGroups(await processTable(), { known, foundIn, ours })
    for (const cgroup of cgroups) killWhole(cgroup, untouchable)
    await untilFalse(isLeft, confirmMs, clock)
  }
}

/** Whoever is gone and has left nobody behind: one that forks all the time would make this a list of thousands. */
const forgetGone = (known: Map<number, ProcessIdentity>, rows: readonly ProcessRow[]): void => {
  const named = new Set(rows.flatMap((row) => [row.identity.pid, row.parentPid, row.processGroup, row.session]))
  for (const [pid, identity] of known) if (!named.has(pid) && liveness(identity) === 'dead') known.delete(pid)
}

const unique = (identities: readonly ProcessIdentity[]): readonly ProcessIdentity[] => [...new Set(identities)]

/**
 * The kernel signals a group in one step, so that a member cannot fork in between. Only a group that bears the pid of one
 * of those we end, or that one of them was found in, and only while nobody else has that pid: it is theirs as long as one
 * of them is in it.
 */
const killGroups = (rows: readonly ProcessRow[], { known, foundIn, ours }: Groups): void => {
  const led = rows.map(({ processGroup }) => processGroup).filter((group) => known.has(group))
  for (const group of new Set([...led, ...foundIn])) {
    if (group <= 1 || ours.has(group)) continue
    // Without a record of its leader: one that ended before anybody looked, so nobody may have its pid now.
    const leader = known.get(group) ?? { pid: group, startTime: 'not seen' }
    const holder = identifySync(group)
    if (holder === undefined ? liveness(leader) === 'dead' : isSame(holder, leader)) signal(-group, 'SIGKILL')
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

const notDead = (identities: readonly ProcessIdentity[]): readonly ProcessIdentity[] =>
  identities.filter((identity) => liveness(identity) !== 'dead')

const signalAll = (identities: readonly ProcessIdentity[], name: 'SIGTERM' | 'SIGKILL'): void => {
  for (const identity of identities) {
    // Looked at right before the signal: a pid may have changed hands since it was found, and one that cannot be read
    // may be anybody's.
    if (identity.pid <= 1 || liveness(identity) !== 'alive') continue
    signal(identity.pid, name)
  }
}

const signal = (target: number, name: 'SIGTERM' | 'SIGKILL'): void => {
  try {
    process.kill(target, name)
  } catch (error) {
    // ESRCH: ended by itself. EPERM: changed its user; it stays among the survivors.
    if (!hasCode(error, 'ESRCH') && !hasCode(error, 'EPERM')) throw error
  }
}

/** Asks often at first, since most programs end within milliseconds of SIGTERM. */
const untilFalse = async (isLeft: () => boolean, limitMs: number, clock: Clock): Promise<void> => {
  const deadline = clock() + limitMs
  for (let pause = 1; isLeft() && clock() < deadline; pause = Math.min(25, pause * 2)) await delay(pause)
}
