import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import { DELIVERY_RETENTION_MS } from '../domain/message.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import { forgetAttachments } from '../runs/attachments/directory.ts'
import type { CleanupReport } from './report.ts'
import { runScheduledCleanup } from './sweep.ts'
import { unreferencedTimer } from '../process/unreferenced-timer.ts'

export type ScheduleOptions = {
  readonly context: IsolationContext
  readonly environments: () => Promise<Environments>
  readonly intervalHours: number
  /** Called, and awaited, as soon as each codebase is done. */
  readonly onReport: (codebase: Codebase, report: CleanupReport) => void | Promise<void>
  /** Prepares spares in the background. Never fails, never waits. */
  readonly keepSpares: (codebaseId: string) => void
  /** Calls back once; returns a function that cancels it. Must not keep the process alive. */
  readonly setTimer?: (callback: () => void, afterMs: number) => () => void
}

export type Schedule = {
  /** Runs the first cycle at once, in the background, and then one per interval. */
  start(): void
  /** Runs one cycle, or joins the one that is running. */
  runNow(): Promise<Cycle>
  /** Starts no more cycles, and waits for the running one to end after its current codebase. */
  stop(): Promise<void>
}

export type Cycle =
  /** Another process is already running a cycle. */
  | { readonly outcome: 'taken' }
  | {
      /** `stopped`: before it was finished. */
      readonly outcome: 'done' | 'stopped'
      readonly cleaned: readonly { readonly codebase: string; readonly report: CleanupReport }[]
      /** One failure doesn't stop the others. */
      readonly failed: readonly { readonly codebase: string; readonly error: string }[]
      readonly forgotten: { readonly messages: number; readonly replies: number }
    }

/** Between cycles only one timer runs: an idle server starts no programs. */
export const createSchedule = (options: ScheduleOptions): Schedule => {
  const { context, intervalHours, setTimer = unreferencedTimer } = options
  const stopping = new AbortController()
  let running: Promise<Cycle> | undefined
  let cancelTimer: (() => void) | undefined

  const runNow = (): Promise<Cycle> => {
    if (stopping.signal.aborted) return Promise.resolve({ outcome: 'stopped', ...noResults })
    running ??= withCleanupLock(options, stopping.signal).finally(() => {
      running = undefined
    })
    return running
  }

  const runAndReschedule = async (): Promise<void> => {
    cancelTimer = undefined
    try {
      await runNow()
    } catch (error) {
      context.log.error('a cleanup cycle failed', { error: toAppError(error).message })
    }
    if (!stopping.signal.aborted) cancelTimer = setTimer(() => void runAndReschedule(), intervalHours * HOUR_MS)
  }

  return {
    start: () => void runAndReschedule(),
    runNow,
    stop: async () => {
      stopping.abort()
      cancelTimer?.()
      // Its failure is reported where it was started.
      await running?.catch(() => undefined)
    },
  }
}

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

const noResults = { cleaned: [], failed: [], forgotten: { messages: 0, replies: 0 } } as const

/** One cycle at a time, across processes too: the lock dies with its holder. */
const withCleanupLock = async (options: ScheduleOptions, signal: AbortSignal): Promise<Cycle> => {
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
    // Only for this lock: a busy repository is a failure of the cycle.
    if (!ours && isAppError(error, 'busy')) return { outcome: 'taken' }
    throw error
  }
}

const cycle = async (options: ScheduleOptions, signal: AbortSignal): Promise<Cycle> => {
  const { context, onReport } = options
  const cleaned: { codebase: string; report: CleanupReport }[] = []
  const failed: { codebase: string; error: string }[] = []
  for (const codebase of await context.store.codebases.list(context.host)) {
    if (signal.aborted) return { ...noResults, outcome: 'stopped', cleaned, failed }
    try {
      const report = await runScheduledCleanup(context, await options.environments(), codebase)
      cleaned.push({ codebase: codebase.name, report })
      await onReport(codebase, report)
      await topUpSpares(options, codebase)
    } catch (error) {
      failed.push({ codebase: codebase.name, error: toAppError(error).message })
      context.log.warn("couldn't clean up a codebase", { codebase: codebase.name, error })
    }
  }
  return { outcome: 'done', cleaned, failed, forgotten: await forgetOld(context) }
}

/** Only for active codebases that lack a spare: each one costs a checkout. */
const topUpSpares = async ({ context, keepSpares }: ScheduleOptions, codebase: Codebase): Promise<void> => {
  const { store, host, settings, clock } = context
  const waiting = (await store.spares.list(codebase.id)).filter((spare) => spare.host === host)
  if (waiting.length >= settings.spares) return
  const [latest] = await store.conversations.recent({ codebaseId: codebase.id, limit: 1 })
  const environments = await store.environments.live(codebase.id)
  const activity = Math.max(
    // A newly registered codebase is about to be used.
    codebase.createdAt,
    latest?.lastActivityAt ?? 0,
    ...environments.map(({ lastActivityAt }) => lastActivityAt),
  )
  // With `staleDays` 0, everything idle is stale; a day of activity still counts.
  if (clock() - activity < Math.max(1, settings.staleDays) * DAY_MS) keepSpares(codebase.id)
}

/** A thread or a user that a platform hasn't heard of for this long is new to it. */
const MEMORY_RETENTION_MS = 90 * DAY_MS

/** How long the row of an agent that is gone is kept. The item's history stays. */
const AGENT_RETENTION_MS = 90 * DAY_MS

const forgetOld = async ({
  store,
  clock,
  log,
  home,
  settings,
}: Pick<IsolationContext, 'store' | 'clock' | 'log' | 'home' | 'settings'>): Promise<{
  messages: number
  replies: number
}> => {
  const before = clock() - DELIVERY_RETENTION_MS
  try {
    // Replies first: they reference their message.
    await store.platformMemory.deleteBefore(clock() - MEMORY_RETENTION_MS)
    await store.fleetAgents.deleteGone(clock() - AGENT_RETENTION_MS)
    await store.events.deleteBefore(clock() - settings.eventDays * DAY_MS)
    const replies = await store.outbox.deleteSent(before)
    const messages = await store.inbox.deleteDone(before)
    await forgetAttachments(home, async (id) => (await store.inbox.get(id)) !== undefined)
    return { messages, replies }
  } catch (error) {
    log.warn("couldn't delete old messages", { error: toAppError(error).message })
    return { messages: 0, replies: 0 }
  }
}
