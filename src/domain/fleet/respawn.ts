const FIRST_MS = 10_000
const LONGEST_MS = 5 * 60_000

/**
 * How long a crashed agent waits before its next start: nothing the first time, then 10 s, doubling up to 5 min. Most
 * crashes are accidents; one that repeats has a cause that takes time to go away, such as an API that is down.
 */
export const respawnDelayMs = (restarts: number): number =>
  restarts === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (restarts - 1))
