import { uptime } from 'node:os'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { ProcessRow } from '../../process/process-row.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { type Relatives, treeIn } from '../../process/tree.ts'
import type { PatrolNote } from '../../store/fleet/store.ts'
import type { FleetContext } from '../context.ts'
import { logFile } from '../sessions/paths.ts'

/** What a program prints or computes right after a nudge may only be the echo of it. */
export const ECHO_MS = 10_000

/** Below this share of a core, a program only keeps its cursor blinking. */
const BUSY_SHARE = 0.005
const TICKS_PER_SECOND = 100

/** After this long without output, CPU time is recorded to compare it in the next round. */
const QUIET_MS = 60_000

/** The notes in which signs of life remember what they saw. */
export const CPU = 'cpu'
export const STUCK = 'stuck'

type Signs = { readonly lastSignAt: number; readonly cpu: PatrolNote['data'] | undefined }

/**
 * The agent's last sign of life, from its log and its processes. `cpu`: what to remember for the next round. A change in
 * the worktree is a sign, too, but asking for it takes longer: see `rows/stuck.ts`.
 */
export const signsOf = (
  { isolation: { home, clock } }: Pick<FleetContext, 'isolation'>,
  agent: FleetAgent,
  { relatives, cpu, nudgedAt }: { relatives: Relatives; cpu: PatrolNote | undefined; nudgedAt: number | undefined },
): Signs => {
  const now = clock()
  const printedAt = lstatIfThere(logFile(home, agent.name))?.mtimeMs ?? 0
  const isEcho = nudgedAt !== undefined && printedAt >= nudgedAt && printedAt < nudgedAt + ECHO_MS
  const lastSignAt = Math.max(agent.lastSignAt, isEcho || printedAt > now ? 0 : Math.floor(printedAt))
  const isEchoing = nudgedAt !== undefined && now < nudgedAt + ECHO_MS
  if (now - lastSignAt < QUIET_MS || isEchoing || agent.session === undefined) return { lastSignAt, cpu: undefined }
  const used = usedBy(treeIn(relatives, [agent.session.root]))
  const before = cpu?.data as Partial<Used> | undefined
  if (before?.ticks === undefined || before.at === undefined) return { lastSignAt, cpu: used }
  if (before.ticks === used.ticks) return { lastSignAt, cpu: undefined }
  return { lastSignAt: isBusy({ ticks: before.ticks, at: before.at }, used) ? now : lastSignAt, cpu: used }
}

/** CPU time in ticks, and when that was, in seconds since boot: a clock that both sides share. */
export type Used = { readonly ticks: number; readonly at: number }

export const usedBy = (rows: readonly ProcessRow[]): Used => ({
  ticks: rows.reduce((sum, row) => sum + (row.cpuTicks ?? 0), 0),
  at: Math.round(uptime()),
})

/** If it was idle for long, a minute of that counts. Less time than before: a process of it has ended. */
export const isBusy = (before: Used, now: Used): boolean => {
  const seconds = Math.min(60, Math.max(0, now.at - before.at))
  const used = now.ticks - before.ticks
  return used < 0 || used >= Math.max(2, BUSY_SHARE * seconds * TICKS_PER_SECOND)
}
