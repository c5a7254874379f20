import { hasCode } from '../domain/error-code.ts'

/** The fields of /proc/<pid>/stat that we use, numbered as in proc(5). */
export type ProcStat = {
  readonly pid: number
  readonly command: string
  /** Exited, but not yet reaped by its parent */
  readonly zombie: boolean
  /** By SIGSTOP or the terminal, not by a debugger */
  readonly stopped: boolean
  /** A kernel thread: no files, directory or owner */
  readonly kernelThread: boolean
  /** A thread rather than a process; /proc doesn't list it, but shows it by number */
  readonly thread: boolean
  readonly parentPid: number
  readonly processGroup: number
  readonly session: number
  /** It has a controlling terminal. */
  readonly terminal: boolean
  /** CPU time, its own and that of children it has waited for, in ticks of 10 ms. */
  readonly cpuTicks: number
  readonly startTicks: string
}

/**
 * The command (field 2) may contain spaces and parentheses, even `) Z 1 (`, so fields are counted from the last `)`.
 */
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
    terminal: field(7) !== '0',
    cpuTicks: [14, 15, 16, 17].reduce((sum, number) => sum + Number(field(number)), 0),
    startTicks,
  }
}

/** ENOENT: the entry is gone. ESRCH: the process exited between open and read. */
export const isGone = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')

/** Another user's process: the kernel refuses access. */
export const isForbidden = (error: unknown): boolean => hasCode(error, 'EACCES') || hasCode(error, 'EPERM')

/** include/linux/sched.h; checking for parent pid 2 fails: in a container it is an ordinary process. */
const PF_KTHREAD = 0x0020_0000

/** If the main thread has exited but others still run, the state is Z, yet the process isn't dead. */
const isEnded = (state: string, threads: number): boolean =>
  state === 'X' || state === 'x' || (state === 'Z' && threads <= 1)
