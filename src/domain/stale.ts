const day = 24 * 60 * 60 * 1000

/** The one definition of stale: no message, commit or use for that many days. 0 is valid: everything idle is stale. */
export const isStale = (lastActivityAt: number, staleDays: number, now: number): boolean =>
  now - lastActivityAt >= staleDays * day
