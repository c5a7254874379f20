import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * For work whose amount an agent decides, such as a directory of a million files: after 10 ms everything else gets a
 * turn. Counting steps does not do it: one `stat` takes a microsecond, or 4 ms through a chain of links.
 */
export type TimeSlice = {
  readonly isOver: () => boolean
  /** Resolves in the next turn; throws once all slices together have taken longer than the limit. */
  readonly next: () => Promise<void>
}

export type TimeLimit = { readonly ms: number; readonly error: () => Error }

const sliceMs = 10

export const createTimeSlice = (limit?: TimeLimit): TimeSlice => {
  let began = performance.now()
  // Only time that this work itself has taken: other work in between must not make it fail.
  let used = 0
  return {
    isOver: () => performance.now() - began >= sliceMs,
    next: async () => {
      used += performance.now() - began
      if (limit !== undefined && used > limit.ms) throw limit.error()
      await nextTurn()
      began = performance.now()
    },
  }
}
