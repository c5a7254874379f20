import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../domain/error-code.ts'
import type { Clock } from '../domain/clock.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync, liveness } from './identity.ts'
import { processTable } from './table.ts'
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

/** The one kill function: ends a process and everything that came from it, and says so only when it is true. */
export const killTree = async (identity: ProcessIdentity, options: KillOptions): Promise<KillOutcome> => {
  const { graceMs, clock, confirmMs = 5_000, leaderMayBeGone = false } = options
  const before = await processTable()
  const untouchable = selfAndAncestors(before, process.pid)
  if (identity.pid <= 1 || untouchable.has(identity.pid)) return { outcome: 'not-ours' }
  const holder = identifySync(identity.pid)
  if (holder !== undefined && !isSame(holder, identity)) return { outcome: 'not-ours' }
  if (holder === undefined) {
    if (liveness(identity) !== 'dead') return { outcome: 'survivors', identities: [identity] }
    if (!leaderMayBeGone) return { outcome: 'dead' }
  }

  const known = new Map<number, ProcessIdentity>([[identity.pid, identity]])
  const look = async (): Promise<readonly ProcessIdentity[]> => {
    for (const member of collectTree(await processTable(), [...known.values()])) {
      if (!untouchable.has(member.pid)) known.set(member.pid, member)
    }
    return notDead([...known.values()])
  }

  signalAll(await look(), 'SIGTERM')
  await untilDead(() => notDead([...known.values()]), graceMs, clock)
  // What a trap or a supervisor started in the meantime is found by looking again, as often as something comes back.
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const alive = await look()
    if (alive.length === 0) return { outcome: 'dead' }
    signalAll(alive, 'SIGKILL')
    await untilDead(() => notDead([...known.values()]), confirmMs, clock)
  }
  const survivors = await look()
  return survivors.length === 0 ? { outcome: 'dead' } : { outcome: 'survivors', identities: survivors }
}

/** A tree that still grows after this many rounds of SIGKILL is a fork bomb, and the caller must hear of it. */
const KILL_ROUNDS = 5

const notDead = (identities: readonly ProcessIdentity[]): readonly ProcessIdentity[] =>
  identities.filter((identity) => liveness(identity) !== 'dead')

const signalAll = (identities: readonly ProcessIdentity[], signal: 'SIGTERM' | 'SIGKILL'): void => {
  for (const identity of identities) {
    // Looked at again right before the signal: a pid may have changed hands since the tree was collected.
    if (identity.pid <= 1 || liveness(identity) !== 'alive') continue
    try {
      process.kill(identity.pid, signal)
    } catch (error) {
      // ESRCH: ended by itself. EPERM: changed its user; it stays among the survivors.
      if (!hasCode(error, 'ESRCH') && !hasCode(error, 'EPERM')) throw error
    }
  }
}

/** Asks often at first, since most programs end within milliseconds of SIGTERM. */
const untilDead = async (alive: () => readonly ProcessIdentity[], limitMs: number, clock: Clock): Promise<void> => {
  const deadline = clock() + limitMs
  for (let pause = 1; alive().length > 0 && clock() < deadline; pause = Math.min(25, pause * 2)) await delay(pause)
}
