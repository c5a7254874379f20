import { backoff } from '../../domain/backoff.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { allowedUpdates } from './allowed-updates.ts'
import { signalFor, type TelegramApi, toDeliveryError } from './client.ts'

export type PollingParts = {
  /** Its timeout must be longer than one long poll. */
  readonly api: TelegramApi
  readonly log: Logger
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The wait after the first failure; doubles each time. */
  readonly pauseMs: number
  /** Resolves once the update is durable; throws otherwise. */
  readonly onUpdate: (update: unknown) => Promise<void>
  readonly onState: (state: 'connected' | 'connecting', problem?: string) => void
}

/** Telegram returns an empty response if nothing happens for this long. */
export const LONG_POLL_SECONDS = 30
const MAX_PAUSE_MS = 30_000
/** An empty response that arrives sooner is from something that doesn't support long polling. */
const MIN_POLL_MS = 1_000

/**
 * Polls for updates until aborted. Requesting the next update confirms the one before, so that happens only once it was
 * accepted: Telegram resends those that failed or weren't reached.
 */
export const poll = async (parts: PollingParts): Promise<void> => {
  const { api, log, clock, signal, pauseMs, onState } = parts
  let offset: number | undefined
  let failures = 0
  let isConnected = false
  const pause = async (ms: number): Promise<void> => {
    await delay(ms, undefined, { signal }).catch(() => undefined)
  }
  const backOff = async (asked = 0): Promise<void> => {
    failures += 1
    const usual = backoff(failures, { firstMs: pauseMs, longestMs: MAX_PAUSE_MS })
    await pause(Math.max(usual, asked))
  }
  while (!signal.aborted) {
    const begun = clock()
    // The first request, and the first after a failure, returns at once and shows the connection's state.
    const timeout = isConnected ? LONG_POLL_SECONDS : 0
    const updates = await ask(api, offset, timeout, signal).catch((error: unknown) => toDeliveryError(error))
    if (signal.aborted) return
    if (updates instanceof Error) {
      isConnected = false
      onState('connecting', updates.message)
      log.warn('polling Telegram failed', { error: updates })
      await backOff(updates.retryAfterMs)
      continue
    }
    isConnected = true
    onState('connected')
    const { next, failed } = await processUpdates(parts, updates)
    // With nothing unconfirmed, no offset is sent: after a quiet week Telegram restarts at another number.
    offset = updates.length === 0 ? undefined : (next ?? offset)
    if (failed !== undefined) {
      log.error('an update could not be accepted; Telegram will resend it', { error: failed })
      onState('connected', 'a message could not be saved')
      await backOff()
      continue
    }
    failures = 0
    if (updates.length === 0 && timeout > 0 && clock() - begun < MIN_POLL_MS) await pause(MIN_POLL_MS)
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

/** In order, up to the first failure; returns the next offset. */
const processUpdates = async (
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
