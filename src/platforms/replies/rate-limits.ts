import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Clock } from '../../domain/clock.ts'
import type { RateLimit } from './port.ts'

/** Pauses and in-flight counts apply to all conversations under a limit, as they do at the service. */
export type RateLimits = {
  /** Throws while the service has asked us to wait: trying anyway would extend the wait. */
  assertOpen(limit: RateLimit): void
  pause(limit: RateLimit, ms: number): void
  /** Counts a reply as in flight until the returned function is called; throws when there are too many. */
  enter(limit: RateLimit): () => void
}

export const createRateLimits = (clock: Clock): RateLimits => {
  const pausedUntil = new Map<string, number>()
  const inFlight = new Map<string, number>()
  return {
    assertOpen: ({ name }) => {
      const until = pausedUntil.get(name)
      if (until === undefined) return
      const left = until - clock()
      if (left > 0) {
        throw new DeliveryError('unreachable', 'the service has asked us to wait', { retryAfterMs: left })
      }
      pausedUntil.delete(name)
    },
    pause: ({ name }, ms) => {
      const now = clock()
      for (const [other, until] of pausedUntil) if (until <= now) pausedUntil.delete(other)
      pausedUntil.set(name, Math.max(pausedUntil.get(name) ?? 0, now + ms))
    },
    enter: ({ name, queue }) => {
      const count = inFlight.get(name) ?? 0
      if (queue !== undefined && count >= queue.most) {
        const retryAfterMs = count * queue.eachMs
        throw new DeliveryError('unreachable', 'too many replies at once', { retryAfterMs })
      }
      inFlight.set(name, count + 1)
      return () => {
        const left = (inFlight.get(name) ?? 1) - 1
        if (left === 0) inFlight.delete(name)
        else inFlight.set(name, left)
      }
    },
  }
}
