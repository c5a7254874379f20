/** How long to wait before the next try: twice as long each time, up to a limit. `failures`: how many there were, from 1. */
export const backoff = (failures: number, { firstMs, longestMs }: { firstMs: number; longestMs: number }): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30))
