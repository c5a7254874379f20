/** The fields of /proc/<pid>/stat that we use, by their numbers in proc(5). */
export type ProcStat = {
  readonly pid: number
  readonly command: string
  readonly state: string
  readonly parentPid: number
  readonly processGroup: number
  readonly session: number
  readonly startTicks: string
}

/** The command (field 2) may hold spaces and parentheses, `) Z 1 (` included, so the rest is counted from the last `)`. */
export const parseStat = (text: string): ProcStat | undefined => {
  const open = text.indexOf('(')
  const close = text.lastIndexOf(')')
  if (open < 0 || close < open) return undefined
  const fields = text.slice(close + 2).split(' ')
  // fields[0] is field 3 of the manual page
  const [state, parentPid, processGroup, session] = fields
  const startTicks = fields[19]
  if (state === undefined || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined
  return {
    pid: Number(text.slice(0, open)),
    command: text.slice(open + 1, close),
    state,
    parentPid: Number(parentPid),
    processGroup: Number(processGroup),
    session: Number(session),
    startTicks,
  }
}

/** ENOENT: no such entry any more. ESRCH: the entry was opened and the process ended before it was read. */
export const isGone = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')

/** Another user's process: the kernel refuses to follow its links. */
export const isForbidden = (error: unknown): boolean => hasCode(error, 'EACCES') || hasCode(error, 'EPERM')

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
