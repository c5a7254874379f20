import { hasCode } from '../domain/error-code.ts'

/** The fields of /proc/<pid>/stat that we use, by their numbers in proc(5). */
export type ProcStat = {
  readonly pid: number
  readonly command: string
  /** Ended, only its parent has not noticed yet */
  readonly zombie: boolean
  /** By SIGSTOP or the terminal; not by a debugger */
  readonly stopped: boolean
  /** A thread of the kernel itself: has no files, no directory, no owner to speak of */
  readonly kernelThread: boolean
  /** Not a process but one of its threads, which /proc does not list but shows to whoever asks for its number */
  readonly thread: boolean
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
  const field = (number: number): string => fields[number - 3] ?? ''
  const startTicks = field(22)
  if (!/^\d+$/.test(startTicks)) return undefined
  return {
    pid: Number(text.slice(0, open)),
    command: text.slice(open + 1, close),
    zombie: isEnded(field(3), Number(field(20))),
    stopped: field(3) === 'T',
    kernelThread: (Number(field(9)) & PF_KTHREAD) !== 0,
    thread: field(38) === '-1',
    parentPid: Number(field(4)),
    processGroup: Number(field(5)),
    session: Number(field(6)),
    startTicks,
  }
}

/** ENOENT: no such entry any more. ESRCH: the entry was opened and the process ended before it was read. */
export const isGone = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')

/** Another user's process: the kernel refuses to follow its links. */
export const isForbidden = (error: unknown): boolean => hasCode(error, 'EACCES') || hasCode(error, 'EPERM')

/** include/linux/sched.h; pid 2 as parent will not do: in a container pid 2 is an ordinary process. */
const PF_KTHREAD = 0x0020_0000

/** A main thread that ended shows Z while its other threads still run; such a process is not dead. */
const isEnded = (state: string, threads: number): boolean =>
  state === 'X' || state === 'x' || (state === 'Z' && threads <= 1)
