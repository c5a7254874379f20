const day = 24 * 60 * 60 * 1000

/** The only definition of stale: no message, commit or use for that many days. With 0, everything idle is stale. */
export const isStale = (lastActivityAt: number, staleDays: number, now: number): boolean =>
  now - lastActivityAt >= staleDays * day
