import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { FleetContext } from '../context.ts'
import { deleteOldGateLogs } from './gate-log.ts'
import { waitsForPullRequest, watchPullRequests } from './pull-requests.ts'
import { type QueueOutcome, workQueue } from './queue.ts'
import { unreferencedTimer } from '../../process/unreferenced-timer.ts'

export type LandingScheduleOptions = {
  /** Lazy, so that a server without a fleet loads none of its code. */
  readonly fleet: () => Promise<FleetContext>
  readonly isolation: Pick<FleetContext['isolation'], 'store' | 'host' | 'settings' | 'log' | 'clock'>
  readonly onWorked?: (codebase: Codebase, outcome: QueueOutcome) => void
  /** Calls back once; returns a function that cancels it. Must not keep the process alive. */
  readonly setTimer?: (callback: () => void, afterMs: number) => () => void
}

/** Works the landing queues off, a codebase at a time each, and watches pull requests. */
export type LandingSchedule = {
  start(): void
  /** Looks soon, because something may have been queued, or a pull request merged. */
  wake(): void
  /** Starts nothing further, and waits for what is running. */
  stop(): Promise<void>
}

/** The code host counts requests. */
const ASK_EVERY_MS = 60_000

/** Nothing runs while no landing is open and no item waits for a pull request. */
export const createLandingSchedule = (options: LandingScheduleOptions): LandingSchedule => {
  const { isolation, fleet, onWorked, setTimer = unreferencedTimer } = options
  const { store, host, settings, log, clock } = isolation
  const stopping = new AbortController()
  const working = new Map<string, Promise<void>>()
  const wantedAgain = new Set<string>()
  let isWanted = false
  let looking: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined
  let askedAt = 0
  let isPruned = false

  /** True if something is still open, so that it has to be looked at again. */
  const look = async (): Promise<boolean> => {
    const pending = new Set((await store.landings.pending()).map(({ codebaseId }) => codebaseId))
    const watched = new Set(
      (await store.items.list({ states: ['in_review', 'parked'] }))
        .filter(waitsForPullRequest)
        .map(({ codebaseId }) => codebaseId),
    )
    if (pending.size === 0 && watched.size === 0) return false
    const context = await fleet()
    if (!isPruned) await deleteOldGateLogs(context)
    isPruned = true
    const isDue = clock() - askedAt >= ASK_EVERY_MS || askedAt > clock()
    if (isDue) askedAt = clock()
    for (const codebase of await store.codebases.list(host)) {
      if (watched.has(codebase.id) && isDue) await watch(context, codebase)
      if (pending.has(codebase.id) || (await hasPending(codebase))) start(context, codebase)
    }
    return true
  }

  const hasPending = async ({ id }: Codebase): Promise<boolean> => (await store.landings.pending(id)).length > 0

  const watch = async (context: FleetContext, codebase: Codebase): Promise<void> => {
    try {
      await watchPullRequests(context, codebase, stopping.signal)
    } catch (error) {
      if (!stopping.signal.aborted) log.warn('pull requests could not be watched', { error: toAppError(error).message })
    }
  }

  /** Gates take long, and other codebases must not wait for them. */
  const start = (context: FleetContext, codebase: Codebase): void => {
    if (working.has(codebase.id)) return void wantedAgain.add(codebase.id)
    const worked = workQueue(context, codebase, stopping.signal)
      .then((outcome) => onWorked?.(codebase, outcome))
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) log.error('a landing queue failed', { error: toAppError(error).message })
      })
      .finally(() => {
        working.delete(codebase.id)
        if (wantedAgain.delete(codebase.id)) wake()
      })
    working.set(codebase.id, worked)
  }

  const rounds = async (): Promise<void> => {
    cancelTimer?.()
    let isOpen = true
    do {
      isWanted = false
      try {
        isOpen = await look()
      } catch (error) {
        log.error('the landing queues could not be read', { error: toAppError(error).message })
      }
    } while (isWanted && !stopping.signal.aborted)
    looking = undefined
    if (isOpen && !stopping.signal.aborted) cancelTimer = setTimer(wake, settings.patrolSeconds * 1000)
  }

  const wake = (): void => {
    isWanted = true
    if (!stopping.signal.aborted) looking ??= rounds()
  }

  return {
    start: wake,
    wake,
    stop: async () => {
      stopping.abort()
      cancelTimer?.()
      await looking
      await Promise.all(working.values())
    },
  }
}
