import type { Store } from '../store/store.ts'

/** Tells event streams that there may be new events of the fleet, whoever recorded them. */
export type EventFeed = {
  subscribe(listener: () => void): () => void
  /** Another process has recorded something. */
  look(): void
}

/** One read for all streams. Nothing is read while there are none. */
const POLL_MS = 1_000

export const createEventFeed = ({ events }: Pick<Store, 'events'>): EventFeed => {
  const listeners = new Set<() => void>()
  let timer: NodeJS.Timeout | undefined
  let unsubscribe: (() => void) | undefined
  let latest = -1
  const look = (): void => {
    for (const listener of listeners) listener()
  }
  const poll = async (): Promise<void> => {
    // If the store is unavailable now, the next poll may reach it.
    const now = await events.latest().catch(() => latest)
    if (now !== latest) look()
    latest = now
    if (listeners.size > 0) timer = setTimeout(() => void poll(), POLL_MS).unref()
  }
  return {
    look,
    subscribe: (listener) => {
      // Wrapped, so that a function can subscribe twice.
      const own = (): void => listener()
      listeners.add(own)
      if (listeners.size === 1) {
        unsubscribe = events.onRecorded(look)
        timer = setTimeout(() => void poll(), POLL_MS).unref()
      }
      return () => {
        if (!listeners.delete(own) || listeners.size > 0) return
        clearTimeout(timer)
        unsubscribe?.()
      }
    },
  }
}
