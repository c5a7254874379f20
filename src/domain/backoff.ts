/** How long to wait before the next attempt: doubles each time, up to a limit. `failures`: failures so far, from 1. */
export const backoff = (failures: number, { firstMs, longestMs }: { firstMs: number; longestMs: number }): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30))
