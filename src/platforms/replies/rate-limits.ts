import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Call, Pace, RateLimit } from './port.ts'

/** Pauses, pace and in-flight counts apply to all conversations under a limit, as they do at the service. */
export type RateLimits = {
  /** Throws while the service has asked us to wait: trying anyway would extend the wait. */
  assertOpen(limit: RateLimit): void
  pause(limit: RateLimit, ms: number): void
  /** A call is made: previews under the same limits wait. */
  count(limit: RateLimit, call: Call): void
  /** Counts a reply as in flight until the returned function is called; throws when there are too many. */
  enter(limit: RateLimit): () => void
  /** Shows a preview as soon as its limits allow, not before `from`, in the order of asking. Returns how to cancel. */
  whenFree(from: number, limitOf: () => RateLimit, show: () => void): () => void
}

type Wait = { readonly since: number; readonly until: number }

type Waiting = Wait & { readonly limitOf: () => RateLimit; readonly show: () => void }

/** When it is over. At once if the clock was set back meanwhile: nobody knows how much of it has passed. */
const endOf = ({ since, until }: Wait, now: number): number => (now < since ? now : until)

export const createRateLimits = (clock: Clock): RateLimits => {
  const pauses = new Map<string, Wait>()
  const usedAt = new Map<string, number>()
  const inFlight = new Map<string, number>()
  const waiting = new Set<Waiting>()
  let timer: NodeJS.Timeout | undefined

  const freeAt = ({ name, everyMs, within }: Pace, now: number): number => {
    const since = usedAt.get(name)
    const pause = pauses.get(name)
    return Math.max(
      since === undefined ? 0 : endOf({ since, until: since + everyMs }, now),
      pause === undefined ? 0 : endOf(pause, now),
      within === undefined ? 0 : freeAt(within, now),
    )
  }
  const use = ({ name, within }: Pace, now: number): void => {
    // Moved to the end: the first is the one used longest ago.
    usedAt.delete(name)
    usedAt.set(name, now)
    const [oldest] = usedAt.keys()
    if (usedAt.size > MOST_LIMITS && oldest !== undefined) usedAt.delete(oldest)
    if (within !== undefined) use(within, now)
  }
  const showDue = (): void => {
    const now = clock()
    for (const one of waiting) {
      const limit = one.limitOf()
      if (Math.max(endOf(one, now), freeAt(limit, now)) > now) continue
      waiting.delete(one)
      use(limit, now)
      one.show()
    }
    arm()
  }
  /** One timer for all, and none while nothing waits. */
  const arm = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.size === 0) return
    const now = clock()
    let next = Infinity
    for (const one of waiting) next = Math.min(next, Math.max(endOf(one, now), freeAt(one.limitOf(), now)))
    timer = setTimeout(showDue, Math.min(Math.max(1, next - now), LONGEST_SLEEP_MS)).unref()
  }

  return {
    assertOpen: ({ name }) => {
      const pause = pauses.get(name)
      if (pause === undefined) return
      const now = clock()
      const left = endOf(pause, now) - now
      if (left > 0) {
        throw new DeliveryError('unreachable', 'the service has asked us to wait', { retryAfterMs: left })
      }
      pauses.delete(name)
    },
    pause: ({ name }, ms) => {
      const now = clock()
      for (const [other, pause] of pauses) if (endOf(pause, now) <= now) pauses.delete(other)
      pauses.set(name, { since: now, until: Math.max(pauses.get(name)?.until ?? 0, now + ms) })
    },
    // Services limit reading separately.
    count: (limit, call) => {
      if (call !== 'find') use(limit, clock())
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
    whenFree: (from, limitOf, show) => {
      const one: Waiting = { since: clock(), until: from, limitOf, show }
      waiting.add(one)
      arm()
      return () => {
        if (waiting.delete(one) && waiting.size === 0) arm()
      }
    },
  }
}

/** The least recently used one is dropped: its pause is over by then. */
const MOST_LIMITS = 10_000
/** A preview may become due earlier than expected: its conversation moved, or the clock did. */
const LONGEST_SLEEP_MS = 10_000
