import { untilAborted } from '../domain/until-aborted.ts'

/**
 * One at a time per key, in order of arrival. Two conversations may share an environment, and two agents that edit one
 * tree at once would undo each other's work.
 */
export type Turns = {
  /** When there are others, `waiting` is called with what waits for them. Answers what gives the turn back. */
  take(key: string, signal: AbortSignal, waiting: (wait: () => Promise<void>) => Promise<void>): Promise<() => void>
}

export const createTurns = (): Turns => {
  const last = new Map<string, Promise<void>>()
  return {
    take: async (key, signal, waiting) => {
      const before = last.get(key)
      const own = Promise.withResolvers<void>()
      const tail = (before ?? Promise.resolve()).then(() => own.promise)
      last.set(key, tail)
      const forget = (): void => {
        if (last.get(key) === tail) last.delete(key)
      }
      const done = (): void => {
        own.resolve()
        forget()
      }
      if (before === undefined) return done
      try {
        await waiting(() => Promise.race([before, untilAborted(signal)]))
        signal.throwIfAborted()
        return done
      } catch (error) {
        // Whoever comes next waits for those before us, not for us.
        own.resolve()
        // And when those are done, whoever comes then is not told to wait for nobody.
        void tail.then(forget)
        throw error
      }
    },
  }
}
