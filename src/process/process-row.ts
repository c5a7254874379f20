import type { ProcessIdentity } from '../domain/process-identity.ts'

export type ProcessRow = {
  readonly identity: ProcessIdentity
  readonly command: string
  readonly parentPid: number
  readonly processGroup: number
  /** 0 if unknown (macOS) */
  readonly session: number
  readonly zombie: boolean
  readonly stopped: boolean
  /** CPU time, its own and that of children it has waited for, in ticks of 10 ms; undefined if unknown (macOS) */
  readonly cpuTicks?: number
}
