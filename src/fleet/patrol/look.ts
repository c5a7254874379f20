/*
 * One look at the fleet of this host. In: rows of the database, one listing per kind of session, one process table. Out:
 * for each agent, what is known about it. Starts no process but the one that lists tmux's sessions.
 */
import { type FleetAgent, isBeingStopped, mayHaveSession, type SessionKind } from '../../domain/fleet/agent.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { Item } from '../../domain/fleet/item.ts'
import { marksAlive } from '../../isolation/agents-inside.ts'
import { presenceOf } from '../../isolation/provider-of.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { type Liveness, liveness, livenessSeenBy } from '../../process/identity.ts'
import { processTable } from '../../process/table.ts'
import { type Relatives, relativesIn, treeIn } from '../../process/tree.ts'
import type { PatrolNote } from '../../store/fleet/store.ts'
import type { FleetContext } from '../context.ts'
import { isHeld } from '../formulas/run-formula.ts'
import { agentDirectory } from '../sessions/paths.ts'
import { programPid } from '../sessions/running.ts'
import type { ListedSession } from '../sessions/session.ts'
import type { Probe, Round, Seen } from './seen.ts'
import { CPU, signsOf, STUCK } from './signs.ts'

/** Instead of a spawn token, for notes that outlast a session. */
export const WHOLE_LIFE = ''

export type Listed = ReadonlyMap<SessionKind, readonly ListedSession[] | undefined>

export type Look = {
  readonly agents: ReadonlyMap<string, Seen>
  readonly round: Round
  /** By kind of session; undefined if they couldn't be listed. */
  readonly listed: Listed
  /** Each `coppice done` that isn't completed. */
  readonly formulas: readonly FormulaRun[]
  readonly notes: () => readonly PatrolNote[]
  /** Reads what the database has about these agents again. One that was restarted is no longer judged by this look. */
  refresh(ids: readonly string[]): Promise<void>
  refreshControl(): Promise<void>
}

export type LookOptions = {
  /** false: changes nothing, not even what earlier rounds have noted. */
  readonly record?: boolean
}

export const takeLook = async (context: FleetContext, { record = true }: LookOptions = {}): Promise<Look> => {
  const { isolation } = context
  const { store, host, clock, settings, home } = isolation
  const rows = await store.fleetAgents.live({ host })
  const noted = new Map<string, PatrolNote>()
  const readNotes = async (): Promise<void> => {
    noted.clear()
    for (const note of await store.patrolNotes.ofHost(host)) noted.set(`${note.subject} ${note.what}`, note)
  }
  await readNotes()
  let round: Round = {
    now: clock(),
    control: await store.fleetControl.get(host),
    restarts: settings.fleetRestarts,
    stuckMs: settings.stuckMinutes * 60_000,
    noteOf: ({ id, spawn }, what) => {
      const note = noted.get(`${id} ${what}`)
      return note?.life === spawn || note?.life === WHOLE_LIFE ? note : undefined
    },
  }
  const records = await readRecords(context, rows)
  const running = await store.formulaRuns.running()
  const listed = await listSessions(context)
  const relatives = relativesIn(await processTable())
  const seen = new Map<string, Seen>()
  for (const agent of rows) {
    const its = recordOf(records, agent)
    const run = running.find(({ agentId }) => agentId === agent.id)
    seen.set(agent.id, {
      ...its,
      ...(await worktreeProbe(context, its, agent)),
      ...sessionProbes(listed, agent),
      program: programProbe(home, agent, relatives),
      leftovers: 'unknown',
      holder:
        agent.state === 'spawning' || isBeingStopped(agent)
          ? asProbe(livenessSeenBy(isolation.self, agent.holder))
          : 'unknown',
      ...formulaOf(context, run),
      lastSignAt: agent.lastSignAt,
    })
  }
  await askForLeftovers(context, seen)
  await recordSigns(context, seen, { relatives, round, record })
  return {
    agents: seen,
    get round() {
      return round
    },
    listed,
    formulas: running,
    notes: () => [...noted.values()],
    refresh: async (ids) => {
      await readNotes()
      for (const id of ids) {
        const before = seen.get(id)
        const agent = await store.fleetAgents.get(id)
        if (before === undefined) continue
        if (agent === undefined || agent.state === 'gone' || agent.spawn !== before.agent.spawn) seen.delete(id)
        else {
          const run = await store.formulaRuns.runningOf(id)
          seen.set(id, {
            ...before,
            ...recordOf(await readRecords(context, [agent]), agent),
            ...formulaOf(context, run),
          })
        }
      }
    },
    refreshControl: async () => {
      round = { ...round, control: await store.fleetControl.get(host) }
    },
  }
}

const formulaOf = (context: FleetContext, run: FormulaRun | undefined): Pick<Seen, 'formula' | 'run'> => ({
  run,
  formula: run === undefined ? 'none' : isHeld(context, run) ? 'held' : 'abandoned',
})

type Records = {
  readonly items: ReadonlyMap<number, Item>
  readonly codebases: ReadonlyMap<string, Codebase>
  readonly environments: ReadonlyMap<string, IsolatedEnvironment>
}

const readRecords = async (
  { isolation: { store, host } }: FleetContext,
  agents: readonly FleetAgent[],
): Promise<Records> => {
  const itemIds = agents.flatMap(({ itemId }) => itemId ?? [])
  const environmentIds = agents.flatMap(({ environmentId }) => environmentId ?? [])
  return {
    items: new Map((await store.items.some(itemIds)).map((one) => [one.id, one])),
    codebases: new Map((await store.codebases.list(host)).map((one) => [one.id, one])),
    environments: new Map((await store.environments.some(environmentIds)).map((one) => [one.id, one])),
  }
}

type Recorded = Pick<Seen, 'agent' | 'item' | 'codebase' | 'environment'>

const recordOf = ({ items, codebases, environments }: Records, agent: FleetAgent): Recorded => ({
  agent,
  item: items.get(agent.itemId ?? -1),
  codebase: codebases.get(agent.codebaseId),
  environment: environments.get(agent.environmentId ?? ''),
})

/** A kind that can't be listed answers nothing about its sessions. */
const listSessions = async ({ sessions, isolation: { log } }: FleetContext): Promise<Listed> =>
  new Map(
    await Promise.all(
      sessions.all().map(async (kind) => {
        const found = await kind.list().catch((error: unknown) => {
          log.warn("sessions can't be listed", { kind: kind.kind, error })
          return undefined
        })
        return [kind.kind, found] as const
      }),
    ),
  )

const asProbe = (answer: Liveness): Probe => (answer === 'alive' ? 'yes' : answer === 'dead' ? 'no' : 'unknown')

const sessionProbes = (
  listed: Listed,
  { name, session }: FleetAgent,
): Pick<Seen, 'session' | 'process' | 'isUnlisted'> => {
  if (session === undefined) {
    const isListed = [...listed.values()].some((all) => all === undefined || all.some((one) => one.name === name))
    return { session: isListed ? 'unknown' : 'no', process: 'no', isUnlisted: !isListed }
  }
  const process = asProbe(liveness(session.root))
  const all = listed.get(session.kind)
  if (all === undefined) return { session: 'unknown', process, isUnlisted: false }
  const found = all.find((one) => one.name === name)
  if (found === undefined) {
    // Only a file says that such a session is there, and an agent can delete it.
    const isUnknown = session.kind === 'process' && process !== 'no'
    return { session: isUnknown ? 'unknown' : 'no', process, isUnlisted: true }
  }
  if (found.dead) return { session: 'no', process, isUnlisted: false }
  // Without a root, tmux hasn't noticed its end yet. Another one was started there by a person.
  const isOther = found.root === undefined ? session.kind === 'process' : found.root.pid !== session.root.pid
  return { session: isOther ? 'unknown' : 'yes', process, isUnlisted: false }
}

const programProbe = (home: string, { name, session }: FleetAgent, relatives: Relatives): Probe => {
  if (session === undefined) return 'unknown'
  const pid = unlessUnreadable(() => programPid(agentDirectory(home, name)))
  if (pid === undefined) return 'unknown'
  // By its place in the session's tree: its number alone may be another process's by now.
  return treeIn(relatives, [session.root]).some(({ identity, zombie }) => identity.pid === pid && !zombie)
    ? 'yes'
    : 'no'
}

/** The agent can write there, too. */
const unlessUnreadable = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** A stat for a living agent; every check of the provider before anything is decided about a dead one. */
const worktreeProbe = async (
  { isolation }: FleetContext,
  { codebase, environment }: Recorded,
  { session }: FleetAgent,
): Promise<Pick<Seen, 'worktree' | 'isMissing'>> => {
  if (environment === undefined || environment.status === 'removed' || environment.status === 'released') {
    return { worktree: 'no', isMissing: false }
  }
  const unknown = { worktree: 'unknown', isMissing: false } as const
  if (codebase === undefined || (environment.status !== 'active' && environment.status !== 'missing')) return unknown
  const isAlive = session !== undefined && liveness(session.root) === 'alive'
  try {
    if (isAlive && lstatIfThere(environment.path)?.isDirectory() === true) return { worktree: 'yes', isMissing: false }
    const { state } = await presenceOf(isolation, codebase, environment)
    if (state === 'present') return { worktree: 'yes', isMissing: false }
    return { worktree: 'unknown', isMissing: state === 'missing' }
  } catch {
    return unknown
  }
}

/** Reading every process's marks takes as long as all the rest, so only about those that seem to be dead. */
const askForLeftovers = async ({ isolation }: FleetContext, seen: Map<string, Seen>): Promise<void> => {
  const suspects = [...seen.values()].filter(
    (one) => mayHaveSession(one.agent.state) && one.agent.state !== 'spawning' && one.process === 'no',
  )
  try {
    for (const [id, leftovers] of await marksAlive(
      isolation,
      suspects.map(({ agent }) => agent),
    )) {
      const one = seen.get(id)
      if (one !== undefined) seen.set(id, { ...one, leftovers })
    }
  } catch (error) {
    isolation.log.warn("agents' processes can't be searched for", { error })
  }
}

/** Records signs of life, in one transaction, and nothing if there were none. */
const recordSigns = async (
  context: FleetContext,
  seen: Map<string, Seen>,
  {
    relatives,
    round: { noteOf },
    record,
  }: { readonly relatives: Relatives; readonly round: Round; readonly record: boolean },
): Promise<void> => {
  const { store, host, clock } = context.isolation
  const changes: {
    readonly agent: FleetAgent
    readonly lastSignAt: number
    readonly cpu: PatrolNote['data'] | undefined
  }[] = []
  for (const one of seen.values()) {
    const { agent } = one
    if (!mayHaveSession(agent.state) || agent.state === 'spawning' || one.process !== 'yes') continue
    const nudged = noteOf(agent, STUCK)?.data['nudgedAt']
    const nudgedAt = typeof nudged === 'number' ? nudged : undefined
    const { lastSignAt, cpu } = signsOf(context, agent, { relatives, cpu: noteOf(agent, CPU), nudgedAt })
    seen.set(agent.id, { ...one, lastSignAt })
    if (cpu !== undefined || lastSignAt > agent.lastSignAt) changes.push({ agent, lastSignAt, cpu })
  }
  if (changes.length === 0 || !record) return
  await store.transaction(async (inside) => {
    for (const { agent, lastSignAt, cpu } of changes) {
      if (lastSignAt > agent.lastSignAt) await inside.fleetAgents.update(agent.id, { lastSignAt })
      if (cpu === undefined) continue
      await inside.patrolNotes.see(host, { subject: agent.id, what: CPU, life: agent.spawn, at: clock(), data: cpu })
    }
  })
}
