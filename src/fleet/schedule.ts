import { toAppError } from '../domain/errors.ts'
import { mayHaveSession } from '../domain/fleet/agent.ts'
import { type FormulaRun, isIntended } from '../domain/fleet/formula.ts'
import type { FleetContext } from './context.ts'
import { type FormulaOutcome, takeOverFormula } from './formulas/run-formula.ts'
import { mayStartAgents, type PoolsReport } from './reconcile-pools.ts'
import { type RoundReport, runRound } from './round.ts'
import { createDeathWatch } from './sessions/death-watch.ts'
import { unreferencedTimer } from '../process/unreferenced-timer.ts'

export type FleetScheduleOptions = {
  /** Lazy, so that a server without a fleet loads none of its code. */
  readonly fleet: () => Promise<FleetContext>
  readonly isolation: Pick<FleetContext['isolation'], 'store' | 'host' | 'home' | 'settings' | 'log'>
  readonly onRound?: (report: PoolsReport) => void
  /** Calls back once; returns a function that cancels it. Must not keep the process alive. */
  readonly setTimer?: (callback: () => void, afterMs: number) => () => void
}

/** The server's rounds: the patrol, and the pools. */
export type FleetSchedule = {
  start(): void
  /** Runs a round soon, because something may have changed. */
  wake(): void
  /** Starts no further rounds, and waits for the current one. */
  stop(): Promise<void>
}

/**
 * Runs at intervals while there are agents, or pools that start agents on their own, and at once when a session dies.
 * Otherwise only when woken.
 */
export const createFleetSchedule = (options: FleetScheduleOptions): FleetSchedule => {
  const { isolation, fleet, onRound, setTimer = unreferencedTimer } = options
  const { store, host, home, settings, log } = isolation
  const stopping = new AbortController()
  const formulas = new Map<string, Promise<void>>()
  const deaths = createDeathWatch(home, () => wake())
  const logged = new Set<string>()
  let isWanted = false
  let running: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  const isNeeded = async (): Promise<boolean> =>
    mayStartAgents(settings.pools) || (await store.fleetAgents.live({ host })).length > 0

  /** Returns how soon the next round is due, if sooner than usual. */
  const round = async (): Promise<number | undefined> => {
    if (!(await isNeeded())) return undefined
    const context = await fleet()
    const report = await runRound(context, { finish: (run) => finish(context, run) })
    logProblems(report)
    onRound?.(report.pools)
    return report.patrol.againInMs
  }

  /** Each problem once, however long it lasts. */
  const logProblems = ({ patrol, pools }: RoundReport): void => {
    const all = [
      ...patrol.problems.map(({ agent, row, why }) => ({ agent, row, why })),
      ...pools.problems.map(({ pool, why }) => ({ pool, why })),
    ]
    const words = new Set(all.map((one) => JSON.stringify(one)))
    for (const one of all) if (!logged.has(JSON.stringify(one))) log.warn('a part of the fleet needs another try', one)
    logged.clear()
    for (const word of words) logged.add(word)
  }

  /** Not awaited by the round once its effects have begun: a repository's own steps may take long. */
  const finish = async (context: FleetContext, run: FormulaRun): Promise<FormulaOutcome | undefined> => {
    if (!isIntended(run)) return takeOverFormula(context, run)
    if (formulas.has(run.id)) return undefined
    const finished = takeOverFormula(context, run, { signal: stopping.signal })
      // Its agent may be free now, or has to continue.
      .then(({ outcome }) => void (['done', 'refused'].includes(outcome) && wake()))
      .catch((error: unknown) => {
        if (stopping.signal.aborted) return
        log.warn('a formula could not be finished', { formula: run.formula, error: toAppError(error).message })
      })
      .finally(() => formulas.delete(run.id))
    formulas.set(run.id, finished)
    return undefined
  }

  const rounds = async (): Promise<void> => {
    cancelTimer?.()
    let dueInMs: number | undefined
    let isTimed = false
    do {
      isWanted = false
      try {
        dueInMs = await round()
      } catch (error) {
        log.error('a fleet round failed', { error: toAppError(error).message })
      }
      await watchSessions()
      isTimed = await isNeeded().catch(() => true)
    } while (isWanted && !stopping.signal.aborted)
    running = undefined
    if (stopping.signal.aborted || !isTimed) return
    cancelTimer = setTimer(wake, Math.min(dueInMs ?? Infinity, settings.patrolSeconds * 1000))
  }

  const watchSessions = async (): Promise<void> => {
    const agents = await store.fleetAgents.live({ host }).catch(() => [])
    if (stopping.signal.aborted) return
    deaths.set(
      agents.flatMap(({ state, session }) => (mayHaveSession(state) && session !== undefined ? [session.root] : [])),
    )
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
      deaths.stop()
      await running
      await Promise.all(formulas.values())
    },
  }
}
