import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Unit } from './port.ts'

/** Limits are the service's: a pause, and how much is under way, counts for all conversations of a unit. */
export type Units = {
  /** Throws while the service has asked us to wait: whatever is tried meanwhile makes it longer. */
  assertOpen(unit: Unit): void
  pause(unit: Unit, ms: number): void
  /** One more is on its way, until the function that it answers is called; throws when there are enough. */
  enter(unit: Unit): () => void
}

export const createUnits = (clock: Clock): Units => {
  const pausedUntil = new Map<string, number>()
  const underWay = new Map<string, number>()
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
      const count = underWay.get(name) ?? 0
      if (queue !== undefined && count >= queue.most) {
        const retryAfterMs = count * queue.eachMs
        throw new DeliveryError('unreachable', 'too many replies at once', { retryAfterMs })
      }
      underWay.set(name, count + 1)
      return () => {
        const left = (underWay.get(name) ?? 1) - 1
        if (left === 0) underWay.delete(name)
        else underWay.set(name, left)
      }
    },
  }
}
