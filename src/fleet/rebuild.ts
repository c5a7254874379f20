import { basename } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import type { FleetAgent, FleetSession } from '../domain/fleet/agent.ts'
import { defaultPriority, isSettled, type Item, toPriority } from '../domain/fleet/item.ts'
import { toWork } from '../domain/work.ts'
import { addCodebase } from '../isolation/codebases/codebases.ts'
import { findLost, type LostEnvironment } from '../isolation/lost/find-lost.ts'
import { acquireLease } from '../isolation/lease.ts'
import { providerOf } from '../isolation/provider-of.ts'
import { agentMark } from '../process/run-mark.ts'
import { processesOfRuns } from '../process/run-processes.ts'
import type { Store } from '../store/store.ts'
import { type AgentFile, noteItem, readAgentFile } from './agent-file.ts'
import type { FleetContext } from './context.ts'
import { itemNumbered } from './items/add.ts'
import type { ListedSession, SessionKindRules } from './sessions/session.ts'

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
      const { environment, item, agent } = await recalled(context, codebase, one, { file, session, by })
      if (item !== undefined) items.push(item.id)
      // Its number may have been given to another one since.
      if (item !== undefined && item.id !== file.item?.id) noteItem(one.tree, item)
      if (agent !== undefined) {
        agents.push(name)
        await leaseAgain(context, codebase, environment, agent)
      }
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

type Rebuild = { readonly file: AgentFile; readonly session: FleetSession | undefined; readonly by: string }

type Recorded = { readonly item: Item | undefined; readonly agent: FleetAgent | undefined }

/** Worktree, item and agent in one transaction: one without the others would never be looked at again. */
const recalled = async (
  context: FleetContext,
  codebase: Codebase,
  lost: LostEnvironment,
  { file, session, by }: Rebuild,
): Promise<Recorded & { readonly environment: IsolatedEnvironment }> => {
  const { isolation } = context
  let recorded: Recorded = { item: undefined, agent: undefined }
  const environment = await (
    await providerOf(isolation, lost)
  ).recall(isolation, codebase, lost, {
    work: toWork('agent', file.agent.name),
    createdBy: by,
    record: async (store, made) => {
      const known = await knownAgent(isolation, store, file)
      const item = await recoverItem(store, made, file, known)
      recorded = { item, agent: await recoverAgent(isolation, store, made, { file, session, item, known }) }
    },
  })
  return { ...recorded, environment }
}

/** A crew member has a file in each worktree. */
const knownAgent = async (
  { host }: Pick<FleetContext['isolation'], 'host'>,
  store: Store,
  { agent: { id, name } }: AgentFile,
): Promise<FleetAgent | undefined> => {
  const found = await store.fleetAgents.byName(host, name)
  return found?.id === id ? found : undefined
}

const recoverItem = async (
  store: Store,
  { id: environmentId, codebaseId }: IsolatedEnvironment,
  { item }: AgentFile,
  known: FleetAgent | undefined,
): Promise<Item | undefined> => {
  if (item === undefined) return undefined
  // Of two items that a crew member claims to have, it gets one.
  const state = isHeld(item) && known?.itemId !== undefined ? 'open' : item.state
  const fields = {
    ...item,
    codebaseId,
    state,
    priority: toPriority(item.priority) ?? defaultPriority,
    source: item.source,
    environmentId: isSettled(state) || state === 'open' ? undefined : environmentId,
    pullRequest: item.pullRequest,
  }
  const recovered = await store.items.recover(fields)
  // Somebody has added others before `fleet up`.
  const id = recovered ? item.id : await store.items.takeIds(1)
  if (!recovered) await store.items.recover({ ...fields, id })
  return itemNumbered(store, id)
}

const isHeld = ({ state }: Pick<Item, 'state'>): boolean => state === 'hooked' || state === 'parked'

/** One whose item waits for a merge, or is settled, was gone already. */
const recoverAgent = async (
  { host, self, clock }: FleetContext['isolation'],
  store: Store,
  { id: environmentId, codebaseId }: IsolatedEnvironment,
  {
    file: { agent },
    session,
    item,
    known,
  }: Pick<Rebuild, 'file' | 'session'> & {
    readonly item: Item | undefined
    readonly known: FleetAgent | undefined
  },
): Promise<FleetAgent | undefined> => {
  const isItsItem = item !== undefined && isHeld(item)
  if (known !== undefined) {
    if (isItsItem) await store.fleetAgents.update(known.id, { itemId: item.id, environmentId, codebaseId })
    return undefined
  }
  if (item !== undefined && !isItsItem && agent.kind === 'worker') return undefined
  const now = clock()
  const row: FleetAgent = {
    ...agent,
    host,
    pool: agent.pool,
    codebaseId,
    state: session === undefined ? 'stopped' : 'working',
    itemId: isItsItem ? item.id : undefined,
    environmentId,
    session,
    lastSignAt: now,
    workedAt: now,
    drainingSince: undefined,
    holder: self,
    endedAt: undefined,
  }
  const inserted = await store.fleetAgents.insert(row)
  if (inserted !== 'inserted') throw new AppError('busy', `an agent ${agent.name} exists already`)
  return row
}

const leaseAgain = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { name, session }: FleetAgent,
): Promise<void> => {
  if (session === undefined) return
  await acquireLease(isolation, codebase, environment, { purpose: `the fleet's agent ${name}`, holder: session.root })
}
