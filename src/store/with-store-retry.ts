import { backoff } from '../domain/backoff.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { isAppError } from '../domain/errors.ts'

export type StoreRetry = {
  readonly log: { warn(message: string, details: Readonly<Record<string, unknown>>): void }
  /** What is tried, for the log. */
  readonly what: string
}

/** 50 ms, doubled each time: 13 s in total, enough for a database restart. */
const FIRST_PAUSE_MS = 50
const MAX_PAUSES = 8

/**
 * For writes that must be recorded although the store may be briefly unavailable: an agent's hour of work, a sent
 * reply. Only for idempotent writes: a connection may break after the commit and before the response.
 */
export const withStoreRetry = async <T>(work: () => Promise<T>, { log, what }: StoreRetry): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (failures > MAX_PAUSES || !isTransient(error)) throw error
      log.warn("couldn't write to the store yet; retrying", { what, failures, error })
      await delay(backoff(failures, { firstMs: FIRST_PAUSE_MS, longestMs: Infinity }))
    }
  }
}

/** An error with its own code would recur; a driver may throw anything. */
const isTransient = (error: unknown): boolean =>
  !isAppError(error) || error.code === 'store-failed' || error.code === 'disk-full' || error.code === 'busy'
