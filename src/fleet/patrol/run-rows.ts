import { toAppError } from '../../domain/errors.ts'
import { respawnDelayMs } from '../../domain/fleet/respawn.ts'
import { mapConcurrent } from '../../isolation/map-concurrent.ts'
import type { PatrolNote } from '../../store/fleet/store.ts'
import type { FleetContext } from '../context.ts'
import { takeOverFormula } from '../formulas/run-formula.ts'
import { DEATH } from './death.ts'
import { type Look, takeLook, WHOLE_LIFE } from './look.ts'
import type { AgentRow, Finding, PatrolOptions, Row, RowContext } from './row.ts'
import type { Seen } from './seen.ts'
import { supervisorNote, supervisorOf } from './supervisor.ts'

export type PatrolReport = {
  readonly findings: readonly Finding[]
  readonly problems: readonly PatrolProblem[]
  /** Something is due this soon, such as a second look. */
  readonly againInMs: number | undefined
}

export type PatrolProblem = { readonly agent: string; readonly row: string; readonly why: string }

/** Each start or end of a session keeps a core busy. */
const AT_ONCE = 4

/** A state is confirmed by a second look that isn't part of the same moment. */
const CONFIRM_MS = 500
const CONFIRM_AGAIN_MS = 1_000

/** Looks once, and goes through these rows with every agent. */
export const runRows = async (
  context: FleetContext,
  rows: readonly Row[],
  { finish }: PatrolOptions = {},
): Promise<PatrolReport> => {
  const look = await takeLook(context)
  const inside: RowContext = {
    ...context,
    supervisor: supervisorOf(context, [...look.agents.values()]),
    finish: finish ?? ((run) => takeOverFormula(context, run)),
  }
  const found: Found = { findings: [], problems: [], unconfirmed: 0 }
  for (const row of rows) {
    if ('actOnFleet' in row) {
      try {
        found.findings.push(...(await row.actOnFleet(inside, look)))
      } catch (error) {
        found.problems.push({ agent: '', row: row.name, why: toAppError(error).message })
      }
    } else await runRow(inside, look, row, found)
  }
  await forgetOld(context, look)
  const { findings, problems, unconfirmed } = found
  const due = [...dueRestarts(look), ...(unconfirmed > 0 ? [CONFIRM_AGAIN_MS] : [])]
  return { findings, problems, againInMs: due.length === 0 ? undefined : Math.min(...due) }
}

type Found = { readonly findings: Finding[]; readonly problems: PatrolProblem[]; unconfirmed: number }

const runRow = async (context: RowContext, look: Look, row: AgentRow, found: Found): Promise<void> => {
  const all = [...look.agents.values()]
  const affected = all.filter((seen) => row.applies(seen, look.round))
  await forget(context, look, row, affected)
  await mapConcurrent(AT_ONCE, affected, async (seen) => {
    const { agent } = seen
    try {
      if (row.isConfirmed === true && !(await isConfirmed(context, row, seen))) {
        found.unconfirmed += 1
        return
      }
      const finding = await row.act(context, seen, look.round)
      if (finding !== undefined) found.findings.push(finding)
    } catch (error) {
      found.problems.push({ agent: agent.name, row: row.name, why: toAppError(error).message })
    }
  })
  if (affected.length > 0) await look.refresh(affected.map(({ agent }) => agent.id))
}

const isConfirmed = async (
  { isolation: { store, host, clock } }: FleetContext,
  { name }: AgentRow,
  { agent: { id, spawn } }: Seen,
): Promise<boolean> => {
  const now = clock()
  const { firstSeen, times } = await store.patrolNotes.see(host, { subject: id, what: name, life: spawn, at: now })
  return times > 1 && now - firstSeen >= CONFIRM_MS
}

/** Forgets what no longer lasts, so that it counts as new when it comes back. */
const forget = async (
  { isolation: { store, host } }: FleetContext,
  look: Look,
  { name }: AgentRow,
  affected: readonly Seen[],
): Promise<void> => {
  const names = [name, supervisorNote(name)]
  const lasting = new Set(affected.map(({ agent }) => agent.id))
  const over = look.notes().filter(({ subject, what }) => names.includes(what) && !lasting.has(subject))
  if (over.length > 0) await store.patrolNotes.clear(host, over)
}

/** Notes about agents that are gone: long enough to be counted as deaths. */
const forgetOld = async ({ isolation: { store, host, clock } }: FleetContext, look: Look): Promise<void> => {
  const isOver = ({ subject, lastSeen }: PatrolNote): boolean =>
    !look.agents.has(subject) && clock() - lastSeen > KEPT_MS
  const over = look.notes().filter(isOver)
  if (over.length > 0) await store.patrolNotes.clear(host, over)
}

const KEPT_MS = 24 * 60 * 60_000

const dueRestarts = ({ agents, round }: Look): readonly number[] =>
  round.control.state !== 'up'
    ? []
    : [...agents.values()].flatMap(({ agent }) => {
        const death = agent.state === 'crashed' ? round.noteOf(agent, DEATH) : undefined
        const due = death === undefined ? 0 : death.lastSeen + respawnDelayMs(agent.restarts) - round.now
        return death?.life === WHOLE_LIFE && due > 0 ? [due] : []
      })
