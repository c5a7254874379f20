/**
 * Pids are reused. Pid and start time identify one process forever.
 * `startTime` is opaque: clock ticks since boot plus boot id on Linux, the start date elsewhere.
 */
export type ProcessIdentity = { readonly pid: number; readonly startTime: string }

/** One word without `/` and `=`, for file names and environment variables. */
export const identityWord = ({ pid, startTime }: ProcessIdentity): string => `${pid}+${encodeURIComponent(startTime)}`

export const parseIdentityWord = (word: string): ProcessIdentity | undefined => {
  const [, pid, startTime] = /^([1-9]\d*)\+([^+]+)$/.exec(word) ?? []
  if (pid === undefined || startTime === undefined) return undefined
  try {
    return { pid: Number(pid), startTime: decodeURIComponent(startTime) }
  } catch {
    return undefined
  }
}
