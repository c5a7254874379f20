import { backoff } from '../../domain/backoff.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { signalFor, type TelegramApi, toDeliveryError } from './client.ts'

export type PollingParts = {
  /** Its patience has to be longer than one long poll. */
  readonly api: TelegramApi
  readonly log: Logger
  readonly clock: Clock
  readonly signal: AbortSignal
  /** How long to wait after the first failure; twice as long after each further one. */
  readonly pauseMs: number
  /** Answers once what it brought is durable; throws when it is not. */
  readonly onUpdate: (update: unknown) => Promise<void>
  readonly onState: (state: 'connected' | 'connecting', problem?: string) => void
}

/** Telegram closes the connection when it has nothing to say for this long. */
export const LONG_POLL_SECONDS = 30
const LONGEST_PAUSE_MS = 30_000
/** An empty answer to a long poll that comes sooner than this came from something that knows no long polls. */
const SOON_MS = 1_000

/** All else is not even sent to us. */
export const allowedUpdates = ['message'] as const

/**
 * Asks for updates until it is told to stop. Asking for what comes after an update is what confirms it, so that is done
 * only when it was accepted: what fails, or was not got round to, Telegram brings again.
 */
export const poll = async (parts: PollingParts): Promise<void> => {
  const { api, log, clock, signal, pauseMs, onState } = parts
  let offset: number | undefined
  let failures = 0
  let isGood = false
  const pause = async (wanted: number): Promise<void> => {
    await delay(wanted, undefined, { signal }).catch(() => undefined)
  }
  const again = async (asked = 0): Promise<void> => {
    failures += 1
    const usual = backoff(failures, { firstMs: pauseMs, longestMs: LONGEST_PAUSE_MS })
    await pause(Math.max(usual, asked))
  }
  while (!signal.aborted) {
    const begun = clock()
    // The first one, and the first after a failure, is answered at once: then it is known how things stand.
    const timeout = isGood ? LONG_POLL_SECONDS : 0
    const updates = await ask(api, offset, timeout, signal).catch((error: unknown) => toDeliveryError(error))
    if (signal.aborted) return
    if (updates instanceof Error) {
      isGood = false
      onState('connecting', updates.message)
      log.warn('Telegram does not say what is new', { error: updates })
      await again(updates.retryAfterMs)
      continue
    }
    isGood = true
    onState('connected')
    const { next, failed } = await handOver(parts, updates)
    // Without anything unconfirmed it is asked without a number: after a quiet week Telegram begins to count anew.
    offset = updates.length === 0 ? undefined : (next ?? offset)
    if (failed !== undefined) {
      log.error('an update could not be accepted; it will be brought again', { error: failed })
      onState('connected', 'a message could not be recorded')
      await again()
      continue
    }
    failures = 0
    if (updates.length === 0 && timeout > 0 && clock() - begun < SOON_MS) await pause(SOON_MS)
  }
}

const ask = (
  api: TelegramApi,
  offset: number | undefined,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly { readonly update_id: number }[]> =>
  api.getUpdates(
    { timeout, allowed_updates: [...allowedUpdates], ...(offset !== undefined && { offset }) },
    signalFor(signal),
  )

/** In order, up to the first that fails; answers what to ask for next. */
const handOver = async (
  { onUpdate, signal }: PollingParts,
  updates: readonly { readonly update_id: number }[],
): Promise<{ readonly next: number | undefined; readonly failed?: unknown }> => {
  let next: number | undefined
  for (const update of updates) {
    if (signal.aborted) break
    try {
      await onUpdate(update)
    } catch (failed) {
      return { next, failed: failed ?? new Error('unknown') }
    }
    next = update.update_id + 1
  }
  return { next }
}
