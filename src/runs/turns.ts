import { untilAborted } from '../domain/until-aborted.ts'

/**
 * One at a time per key, in order of arrival. Conversations may share an environment, and two agents editing one tree
 * would undo each other's work.
 */
export type Turns = {
  /** If others are ahead, calls `waiting` with a function that waits for them. Returns the release. */
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
        // The next in line waits for those before us.
        own.resolve()
        // Once those are done, newcomers needn't wait.
        void tail.then(forget)
        throw error
      }
    },
  }
}
