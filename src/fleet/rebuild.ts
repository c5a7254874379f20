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
 * After the database was lost: agents, items and hooks, from the worktrees, the small file in each one's git directory
 * and the sessions that run. What only the database had, such as items without a worktree, is lost with it.
 */
export const rebuildFleet = async (context: FleetContext, { by }: { readonly by: string }): Promise<Rebuilt> => {
  const { isolation } = context
  const lost = await findLost(isolation, ({ tree }) => readAgentFile(tree) !== undefined)
  const known = lost.flatMap((one) => {
    const file = readAgentFile(one.tree)
    return file === undefined ? [] : [{ lost: one, file }]
  })
  // Items wait for items with smaller numbers, unless somebody has edited that.
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
      const environment = await recalled(context, codebase, one, { name, by })
      if (await recoverItem(context, codebase, environment, file)) items.push(file.item?.id ?? 0)
      if (await recoverAgent(context, codebase, environment, file, session)) agents.push(name)
      isolation.log.warn('an agent was rebuilt from its worktree', { agent: name, path: environment.path })
    } catch (error) {
      problems.push({ agent: name, why: `couldn't rebuild it from ${one.tree.path}: ${toAppError(error).message}` })
    }
  }
  return { agents, items, problems }
}

/** By the name of its directory, which says whom it was made for. The file alone could name anybody. */
const wasMadeFor = ({ tree: { path } }: LostEnvironment, name: string): boolean =>
  basename(path).startsWith(`agent-${name}-`)

type Running = { readonly kind: SessionKindRules; readonly seen: ListedSession }

const runningSessions = async ({ sessions }: FleetContext): Promise<readonly Running[]> => {
  const found = await Promise.all(
    sessions.all().map(async (kind) => (await kind.list()).map((seen) => ({ kind, seen }))),
  )
  return found.flat().filter(({ seen }) => !seen.dead)
}

/** The agent's own, if it still runs. Throws if one of its name runs that isn't this life of it. */
const sessionOf = async (
  { isolation: { home, clock } }: FleetContext,
  running: readonly Running[],
  { agent: { name, spawn } }: AgentFile,
): Promise<FleetSession | undefined> => {
  const found = running.find(({ seen }) => seen.name === name)
  if (found === undefined) return undefined
  const { kind, seen } = found
  const { rows } = await processesOfRuns([agentMark(home, spawn)])
  const root = rows.find(({ identity }) => identity.pid === seen.root?.pid)?.identity
  if (root === undefined) throw new AppError('busy', `another session called ${name} is running`)
  return { kind: kind.kind, target: seen.target, root, startedAt: seen.startedAt ?? clock() }
}

const codebaseOf = async ({ isolation }: FleetContext, lost: LostEnvironment): Promise<Codebase> => {
  const known = await isolation.store.codebases.byRepoPath(isolation.host, lost.repoPath)
  if (known !== undefined) return known
  return (await addCodebase(isolation, lost.repoPath, '/', { called: lost.codebase })).codebase
}

const recalled = async (
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

/** One whose item waits for a merge was gone already. */
const recoverAgent = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { agent, item }: AgentFile,
  session: FleetSession | undefined,
): Promise<boolean> => {
  const { store, host, self, clock } = isolation
  if (item !== undefined && item.state !== 'hooked' && item.state !== 'parked') return false
  // A crew member has a file in each worktree.
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
