import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import { REMEMBERED_MS } from '../domain/message.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Isolation } from '../isolation/isolation.ts'
import type { CleanupReport } from './report.ts'
import { runScheduledCleanup } from './sweep.ts'

export type ScheduleOptions = {
  readonly context: IsolationContext
  readonly provider: () => Promise<Isolation>
  readonly intervalHours: number
  /** Told of each codebase as soon as it is done, and waited for. */
  readonly onReport: (codebase: Codebase, report: CleanupReport) => void | Promise<void>
  /** Prepares spares in the background. Never fails, never waits. */
  readonly keepSpares: (codebaseId: string) => void
  /** Calls back once, after so long; answers what takes that back. Must not keep the process alive. */
  readonly setTimer?: (callback: () => void, afterMs: number) => () => void
}

export type Schedule = {
  /** The first cycle at once, in the background, and one every interval after it. */
  start(): void
  /** One cycle. Who asks while one runs gets that one's answer. */
  runNow(): Promise<Cycle>
  /** No cycle begins any more; one that runs ends after the codebase it is at, and is waited for. */
  stop(): Promise<void>
}

export type Cycle =
  /** Another process is at it: this round is left to it. */
  | { readonly outcome: 'taken' }
  | {
      /** `stopped`: before it was through. */
      readonly outcome: 'done' | 'stopped'
      readonly cleaned: readonly { readonly codebase: string; readonly report: CleanupReport }[]
      /** One that fails does not keep the others from it. */
      readonly failed: readonly { readonly codebase: string; readonly error: string }[]
      readonly forgotten: { readonly messages: number; readonly replies: number }
    }

/** Between two cycles there is one timer and nothing else: an idle server starts no program. */
export const createSchedule = (options: ScheduleOptions): Schedule => {
  const { context, intervalHours, setTimer = unreferencedTimer } = options
  const stopping = new AbortController()
  let running: Promise<Cycle> | undefined
  let cancelTimer: (() => void) | undefined

  const runNow = (): Promise<Cycle> => {
    if (stopping.signal.aborted) return Promise.resolve({ outcome: 'stopped', ...nothing })
    running ??= oneAtATime(options, stopping.signal).finally(() => {
      running = undefined
    })
    return running
  }

  const round = async (): Promise<void> => {
    cancelTimer = undefined
    try {
      await runNow()
    } catch (error) {
      context.log.error('a cleanup cycle failed', { error: toAppError(error).message })
    }
    if (!stopping.signal.aborted) cancelTimer = setTimer(() => void round(), intervalHours * HOUR_MS)
  }

  return {
    start: () => void round(),
    runNow,
    stop: async () => {
      stopping.abort()
      cancelTimer?.()
      // Its failure is the business of whoever began it.
      await running?.catch(() => undefined)
    },
  }
}

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

const nothing = { cleaned: [], failed: [], forgotten: { messages: 0, replies: 0 } } as const

const unreferencedTimer = (callback: () => void, afterMs: number): (() => void) => {
  const timer = setTimeout(callback, afterMs).unref()
  return () => clearTimeout(timer)
}

/** Across processes too: the lock dies with its holder, so nobody waits for one that was killed. */
const oneAtATime = async (options: ScheduleOptions, signal: AbortSignal): Promise<Cycle> => {
  const { lock, home } = options.context
  const directory = join(home, 'locks', 'cleanup')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  let ours = false
  try {
    return await lock.withRepositoryLock(directory, { purpose: 'the scheduled cleanup', timeoutMs: 1 }, () => {
      ours = true
      return cycle(options, signal)
    })
  } catch (error) {
    // Only of the lock itself: a repository that is busy is a failure of the cycle.
    if (!ours && isAppError(error, 'busy')) return { outcome: 'taken' }
    throw error
  }
}

const cycle = async (options: ScheduleOptions, signal: AbortSignal): Promise<Cycle> => {
  const { context, onReport } = options
  const cleaned: { codebase: string; report: CleanupReport }[] = []
  const failed: { codebase: string; error: string }[] = []
  for (const codebase of await context.store.codebases.list(context.host)) {
    if (signal.aborted) return { ...nothing, outcome: 'stopped', cleaned, failed }
    try {
      const report = await runScheduledCleanup(context, await options.provider(), codebase)
      cleaned.push({ codebase: codebase.name, report })
      await onReport(codebase, report)
      await keepWarm(options, codebase)
    } catch (error) {
      failed.push({ codebase: codebase.name, error: toAppError(error).message })
      context.log.warn('a codebase could not be cleaned', { codebase: codebase.name, error })
    }
  }
  return { outcome: 'done', cleaned, failed, forgotten: await forgetOld(context) }
}

/** Only where somebody works, and only where one is missing: each costs a checkout. */
const keepWarm = async ({ context, keepSpares }: ScheduleOptions, codebase: Codebase): Promise<void> => {
  const { store, host, settings, clock } = context
  const waiting = (await store.spares.list(codebase.id)).filter((spare) => spare.host === host)
  if (waiting.length >= settings.spares) return
  const [latest] = await store.conversations.recent({ codebaseId: codebase.id, limit: 1 })
  const environments = await store.environments.live(codebase.id)
  const activity = Math.max(
    // Whoever has just registered it is about to use it.
    codebase.createdAt,
    latest?.lastActivityAt ?? 0,
    ...environments.map(({ lastActivityAt }) => lastActivityAt),
  )
  // `staleDays` of 0 calls everything stale that is idle; a day of work is still work.
  if (clock() - activity < Math.max(1, settings.staleDays) * DAY_MS) keepSpares(codebase.id)
}

const forgetOld = async ({
  store,
  clock,
  log,
}: Pick<IsolationContext, 'store' | 'clock' | 'log'>): Promise<{ messages: number; replies: number }> => {
  const before = clock() - REMEMBERED_MS
  try {
    // Replies first: they name their message.
    const replies = await store.outbox.deleteSent(before)
    return { messages: await store.inbox.deleteDone(before), replies }
  } catch (error) {
    log.warn('old messages could not be forgotten', { error: toAppError(error).message })
    return { messages: 0, replies: 0 }
  }
}
