import { backoff } from '../domain/backoff.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { isAppError } from '../domain/errors.ts'

export type StoreRetry = {
  readonly log: { warn(message: string, details: Readonly<Record<string, unknown>>): void }
  /** What is tried, for the log. */
  readonly what: string
}

/** 50 ms and twice as long each time: 13 s in all, enough for a database that restarts. */
const FIRST_PAUSE_MS = 50
const MOST_PAUSES = 8

/**
 * For what must be recorded although the store may be away for a moment: an agent's hour of work, a reply that is out.
 * Only for writes that may be made twice, since a connection may break after the commit and before its answer.
 */
export const withStoreRetry = async <T>(work: () => Promise<T>, { log, what }: StoreRetry): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (failures > MOST_PAUSES || !mayPass(error)) throw error
      log.warn('something could not be recorded yet', { what, failures, error })
      await delay(backoff(failures, { firstMs: FIRST_PAUSE_MS, longestMs: Infinity }))
    }
  }
}

/** A fault with a code of its own is an answer and would be the same again; what a driver throws may be anything. */
const mayPass = (error: unknown): boolean =>
  !isAppError(error) || error.code === 'store-failed' || error.code === 'disk-full' || error.code === 'busy'
