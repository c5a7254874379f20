import { toAppError } from '../domain/errors.ts'
import type { FleetContext } from './context.ts'
import { reconcilePools, mayStartAgents, type PoolsReport } from './reconcile-pools.ts'
import { abandonedFormulas } from './formulas/abandoned.ts'
import { takeOverFormula } from './formulas/run-formula.ts'
import { recoverFleet } from './recover.ts'

export type FleetScheduleOptions = {
  /** Lazy, so that a server without a fleet loads none of its code. */
  readonly fleet: () => Promise<FleetContext>
  readonly isolation: Pick<FleetContext['isolation'], 'store' | 'host' | 'settings' | 'log'>
  readonly onRound?: (report: PoolsReport) => void
  /** Calls back once; returns a function that cancels it. Must not keep the process alive. */
  readonly setTimer?: (callback: () => void, afterMs: number) => () => void
}

/** The server's rounds: recovers what crashed and brings the pools to size. */
export type FleetSchedule = {
  start(): void
  /** Runs a round soon, because something may have changed. */
  wake(): void
  /** Starts no further rounds, and waits for the current one. */
  stop(): Promise<void>
}

/**
 * Runs at intervals while there are agents, or pools that start agents on their own. Otherwise only when woken.
 */
export const createFleetSchedule = (options: FleetScheduleOptions): FleetSchedule => {
  const { isolation, fleet, onRound, setTimer = unreferencedTimer } = options
  const { store, host, settings, log } = isolation
  const stopping = new AbortController()
  const formulas = new Map<string, Promise<void>>()
  let isWanted = false
  let running: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  const isNeeded = async (): Promise<boolean> =>
    mayStartAgents(settings.pools) || (await store.fleetAgents.live({ host })).length > 0

  const round = async (): Promise<void> => {
    if (!(await isNeeded())) return
    const context = await fleet()
    await startFormulas(context)
    await recoverFleet(context, { withFormulas: false })
    const report = await reconcilePools(context)
    for (const { pool, why } of report.problems) log.warn('a pool could not be reconciled', { pool, why })
    onRound?.(report)
  }

  /** Not awaited by the round: a repository's own steps may take long. */
  const startFormulas = async (context: FleetContext): Promise<void> => {
    for (const run of await abandonedFormulas(context)) {
      if (formulas.has(run.id)) continue
      const finished = takeOverFormula(context, run, { signal: stopping.signal })
        .then(() => undefined)
        .catch((error: unknown) => {
          if (stopping.signal.aborted) return
          log.warn('a formula could not be finished', { formula: run.formula, error: toAppError(error).message })
        })
        .finally(() => formulas.delete(run.id))
      formulas.set(run.id, finished)
    }
  }

  const rounds = async (): Promise<void> => {
    cancelTimer?.()
    do {
      isWanted = false
      try {
        await round()
      } catch (error) {
        log.error('a fleet round failed', { error: toAppError(error).message })
      }
    } while (isWanted && !stopping.signal.aborted)
    running = undefined
    if (stopping.signal.aborted) return
    if (await isNeeded().catch(() => true)) cancelTimer = setTimer(wake, settings.patrolSeconds * 1000)
  }

  const wake = (): void => {
    isWanted = true
    if (!stopping.signal.aborted) running ??= rounds()
  }

  return {
    start: wake,
    wake,
    stop: async () => {
      stopping.abort()
      cancelTimer?.()
      await running
      await Promise.all(formulas.values())
    },
  }
}

const unreferencedTimer = (callback: () => void, afterMs: number): (() => void) => {
  const timer = setTimeout(callback, afterMs).unref()
  return () => clearTimeout(timer)
}
