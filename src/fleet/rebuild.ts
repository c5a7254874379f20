import { basename } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import type { FleetAgent, FleetSession } from '../domain/fleet/agent.ts'
import { defaultPriority, toPriority } from '../domain/fleet/item.ts'
import { toWork } from '../domain/work.ts'
import { addCodebase } from '../isolation/codebases/codebases.ts'
import { findLost, type LostEnvironment } from '../isolation/lost/find-lost.ts'
import { acquireLease } from '../isolation/lease.ts'
import { providerOf } from '../isolation/provider-of.ts'
import { agentMark } from '../process/run-mark.ts'
import { processesOfRuns } from '../process/run-processes.ts'
import { type AgentFile, readAgentFile } from './agent-file.ts'
import type { FleetContext } from './context.ts'
import type { SessionKindRules, ListedSession } from './sessions/session.ts'

export type Rebuilt = {
  readonly agents: readonly string[]
  readonly items: readonly number[]
  readonly problems: readonly { readonly agent: string; readonly why: string }[]
}

/**
 * Rebuilds agents, items and hooks after the database was lost, from the worktrees, the agent file in their git
 * directories and the running sessions. Items without a worktree can't be recovered.
 */
export const rebuildFleet = async (context: FleetContext, { by }: { readonly by: string }): Promise<Rebuilt> => {
  const { isolation } = context
  const lost = await findLost(isolation, ({ tree }) => readAgentFile(tree) !== undefined)
  const known = lost.flatMap((one) => {
    const file = readAgentFile(one.tree)
    return file === undefined ? [] : [{ lost: one, file }]
  })
  // By number: an item usually depends on items with smaller numbers.
  known.sort((a, b) => (a.file.item?.id ?? 0) - (b.file.item?.id ?? 0))
  const agents: string[] = []
  const items: number[] = []
  const problems: { agent: string; why: string }[] = []
  const running = known.length === 0 ? [] : await runningSessions(context)
  for (const { lost: one, file } of known) {
    const { name } = file.agent
    try {
      if (!wasMadeFor(one, name)) throw new AppError('not-adoptable', `it wasn't made for an agent called ${name}`)
      const session = await sessionOf(context, running, file)
      const codebase = await codebaseOf(context, one)
      const environment = await recallEnvironment(context, codebase, one, { name, by })
      if (await recoverItem(context, codebase, environment, file)) items.push(file.item?.id ?? 0)
      if (await recoverAgent(context, codebase, environment, file, session)) agents.push(name)
      isolation.log.warn('an agent was rebuilt from its worktree', { agent: name, path: environment.path })
    } catch (error) {
      problems.push({ agent: name, why: `couldn't rebuild it from ${one.tree.path}: ${toAppError(error).message}` })
    }
  }
  return { agents, items, problems }
}

/** Checks the directory's name, because the agent could have written any name into the file. */
const wasMadeFor = ({ tree: { path } }: LostEnvironment, name: string): boolean =>
  basename(path).startsWith(`agent-${name}-`)

type Running = { readonly kind: SessionKindRules; readonly listed: ListedSession }

const runningSessions = async ({ sessions }: FleetContext): Promise<readonly Running[]> => {
  const found = await Promise.all(
    sessions.all().map(async (kind) => (await kind.list()).map((listed) => ({ kind, listed }))),
  )
  return found.flat().filter(({ listed }) => !listed.dead)
}

/** The agent's session, if it is still running. Throws if a session of that name belongs to another spawn. */
const sessionOf = async (
  { isolation: { home, clock } }: FleetContext,
  running: readonly Running[],
  { agent: { name, spawn } }: AgentFile,
): Promise<FleetSession | undefined> => {
  const found = running.find(({ listed }) => listed.name === name)
  if (found === undefined) return undefined
  const { kind, listed } = found
  const { rows } = await processesOfRuns([agentMark(home, spawn)])
  const root = rows.find(({ identity }) => identity.pid === listed.root?.pid)?.identity
  if (root === undefined) throw new AppError('busy', `another session called ${name} is running`)
  return { kind: kind.kind, target: listed.target, root, startedAt: listed.startedAt ?? clock() }
}

const codebaseOf = async ({ isolation }: FleetContext, lost: LostEnvironment): Promise<Codebase> => {
  const known = await isolation.store.codebases.byRepoPath(isolation.host, lost.repoPath)
  if (known !== undefined) return known
  return (await addCodebase(isolation, lost.repoPath, '/', { called: lost.codebase })).codebase
}

const recallEnvironment = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  lost: LostEnvironment,
  { name, by }: { readonly name: string; readonly by: string },
): Promise<IsolatedEnvironment> =>
  (await providerOf(isolation, lost)).recall(isolation, codebase, lost, { work: toWork('agent', name), createdBy: by })

const recoverItem = async (
  { isolation: { store } }: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { item }: AgentFile,
): Promise<boolean> => {
  if (item === undefined) return false
  const { priority, pullRequest, source, ...fields } = item
  const recovered = await store.items.recover({
    ...fields,
    codebaseId: codebase.id,
    priority: toPriority(priority) ?? defaultPriority,
    source,
    environmentId: environment.id,
    pullRequest,
  })
  if (!recovered) throw new AppError('busy', `item ${item.id} exists already`)
  return true
}

/** Skips an agent whose item waits for a merge: that agent was gone already. */
const recoverAgent = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { agent, item }: AgentFile,
  session: FleetSession | undefined,
): Promise<boolean> => {
  const { store, host, self, clock } = isolation
  if (item !== undefined && item.state !== 'hooked' && item.state !== 'parked') return false
  // A crew member has a file in each of its worktrees; one is enough.
  if ((await store.fleetAgents.byName(host, agent.name))?.id === agent.id) return false
  const now = clock()
  const row: FleetAgent = {
    ...agent,
    host,
    pool: agent.pool,
    codebaseId: codebase.id,
    state: session === undefined ? 'stopped' : 'working',
    itemId: item?.id,
    environmentId: environment.id,
    session,
    lastSignAt: now,
    workedAt: now,
    drainingSince: undefined,
    holder: self,
    endedAt: undefined,
  }
  const inserted = await store.fleetAgents.insert(row)
  if (inserted !== 'inserted') throw new AppError('busy', `an agent ${agent.name} exists already`)
  if (session !== undefined) {
    const purpose = `the fleet's agent ${agent.name}`
    await acquireLease(isolation, codebase, environment, { purpose, holder: session.root })
  }
  return true
}
