import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * For work whose size an agent controls, such as a directory of a million files: yields after 10 ms. Counting steps
 * isn't enough: one `stat` takes 1 µs, or 4 ms through a chain of links.
 */
export type TimeSlice = {
  readonly isOver: () => boolean
  /** Resolves in the next tick; throws once all slices together exceed the limit. */
  readonly next: () => Promise<void>
}

export type TimeLimit = { readonly ms: number; readonly error: () => Error }

const sliceMs = 10

export const createTimeSlice = (limit?: TimeLimit): TimeSlice => {
  let began = performance.now()
  // Only this work's own time: other work in between must not make it fail.
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
