/*
 * The crew: permanent agents with a worktree in any number of codebases, under one name. Only a person removes their
 * worktrees.
 */
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import { type FleetAgent, mayHaveSession, toAgentName } from '../domain/fleet/agent.ts'
import type { Notice } from '../domain/notice.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { toWork } from '../domain/work.ts'
import type { LimitReport } from '../isolation/resolve/resolution.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'
import { providerOf } from '../isolation/provider-of.ts'
import { writeAgentFile } from './agent-file.ts'
import type { FleetContext } from './context.ts'
import { deleteAgentFiles } from './end-session.ts'
import { isFreeName } from './names.ts'
import { newAgent } from './new-agent.ts'
import { programFor } from './program.ts'
import { identityOf } from './sessions/variables.ts'
import { stopAgent } from './stop-agent.ts'
import { treeOf } from './tree.ts'
import { cancelStart, restartAgent } from './restart-agent.ts'

export type CrewRequest = {
  readonly name: string
  readonly codebases: readonly [Codebase, ...Codebase[]]
  readonly agent?: string | undefined
  readonly by: string
  readonly signal?: AbortSignal | undefined
}

export type CrewTree = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly notices: readonly Notice[]
}

export type CrewAdded =
  | { readonly outcome: 'added'; readonly agent: FleetAgent; readonly trees: readonly CrewTree[] }
  | { readonly outcome: 'limit'; readonly report: LimitReport }

/**
 * Creates a member with a worktree in each codebase, and starts its session. A failure undoes exactly what this
 * created.
 */
export const addCrew = async (context: FleetContext, request: CrewRequest): Promise<CrewAdded> => {
  const { isolation } = context
  const { store, failpoint } = isolation
  const [first, ...others] = request.codebases
  const agent = await newMember(context, request, first)
  const trees: CrewTree[] = []
  try {
    await failpoint('crew.recorded')
    for (const codebase of [first, ...others]) {
      const made = await addTree(context, agent, codebase, request)
      if ('report' in made) {
        await undoMember(context, agent.id)
        return { outcome: 'limit', report: made.report }
      }
      trees.push(made)
      if (codebase === first) await store.fleetAgents.update(agent.id, { environmentId: made.environment.id })
      await failpoint('crew.tree')
    }
    await store.fleetAgents.move(agent.id, 'spawning', 'stopped')
    const { state } = await store.fleetControl.get(isolation.host)
    const member = (await store.fleetAgents.get(agent.id)) ?? agent
    if (state !== 'up') return { outcome: 'added', agent: member, trees }
    const awake = await restartAgent(context, member, undefined, { by: request.by })
    return { outcome: 'added', agent: awake.agent, trees }
  } catch (error) {
    await undoMember(context, agent.id).catch((undo: unknown) =>
      isolation.log.error('could not undo a crew member that failed to start', {
        agent: agent.name,
        error: undo,
      }),
    )
    throw error
  }
}

const newMember = async (
  context: FleetContext,
  { name: given, agent: wanted }: CrewRequest,
  codebase: Codebase,
): Promise<FleetAgent> => {
  const name = toAgentName(given)
  if (!(await isFreeName(context, name))) {
    throw new AppError('name-invalid', `the name ${name} is in use`, { remedy: 'choose another name' })
  }
  const program = await programFor(context, { agent: wanted, command: undefined }, codebase)
  const agent = newAgent(context, { name, kind: 'crew', pool: undefined, codebaseId: codebase.id, program })
  if ((await context.isolation.store.fleetAgents.insert(agent)) === 'inserted') return agent
  throw new AppError('name-invalid', `the name ${name} was just taken`, { remedy: 'choose another name' })
}

/** Creates or finds the member's worktree in this codebase, and sets the member's name in its git configuration. */
const addTree = async (
  { isolation, environments }: FleetContext,
  agent: FleetAgent,
  codebase: Codebase,
  { by, signal }: Pick<CrewRequest, 'by' | 'signal'>,
): Promise<CrewTree | { readonly report: LimitReport }> => {
  const resolved = await resolveIsolation(isolation, await environments(), {
    codebase,
    work: toWork('agent', agent.name),
    hints: {},
    createdBy: by,
    ...(signal !== undefined && { signal }),
  })
  if (resolved.outcome === 'limit') return { report: resolved.report }
  const { environment, notices } = resolved
  const tree = await treeOf(isolation, codebase, environment)
  await (await providerOf(isolation, environment)).setAuthor(isolation, codebase, tree, identityOf(agent.name))
  // The worktree may exist already, with the member's item in it.
  const itemId = agent.environmentId === environment.id ? agent.itemId : undefined
  writeAgentFile(tree, agent, itemId === undefined ? undefined : await isolation.store.items.get(itemId))
  return { codebase, environment, notices }
}

/** Adds a worktree in another codebase for an existing member. */
export const addCrewTree = async (
  context: FleetContext,
  name: string,
  codebase: Codebase,
  asking: Pick<CrewRequest, 'by' | 'signal'>,
): Promise<CrewTree | { readonly report: LimitReport }> =>
  addTree(context, await memberNamed(context, name), codebase, asking)

const memberNamed = async ({ isolation: { store, host } }: FleetContext, name: string): Promise<FleetAgent> => {
  const found = await store.fleetAgents.byName(host, name)
  if (found?.kind === 'crew') return found
  throw new AppError('not-found', `unknown crew member ${JSON.stringify(name.slice(0, 60))}`, {
    remedy: remedy`run ${coppice('crew list')} for a list`,
  })
}

/** Oldest first. */
export const treesOf = async (
  { isolation: { store, host } }: FleetContext,
  name: string,
): Promise<readonly { readonly codebase: Codebase; readonly environment: IsolatedEnvironment }[]> => {
  const found = []
  for (const codebase of await store.codebases.list(host)) {
    const environment = await store.environments.liveByWork(codebase.id, toWork('agent', name))
    if (environment !== undefined) found.push({ codebase, environment })
  }
  return found.toSorted((a, b) => a.environment.createdAt - b.environment.createdAt)
}

export type CrewRemoved = {
  readonly agent: FleetAgent
  readonly removed: readonly IsolatedEnvironment[]
  /** If any worktree is kept, so is the member. */
  readonly kept: readonly { readonly environment: IsolatedEnvironment; readonly reasons: readonly GateAnswer[] }[]
}

/** Ends the member's session, and removes the worktrees that the gates allow. */
export const removeCrew = async (context: FleetContext, name: string): Promise<CrewRemoved> => {
  const member = await memberNamed(context, name)
  if (member.itemId !== undefined) {
    throw new AppError('busy', `${name} has item ${member.itemId}`, {
      remedy: remedy`close it first: ${coppice(`item close ${member.itemId}`)}`,
    })
  }
  context.isolation.progress(`stopping ${name}`)
  const stopped = await stopAgent(context, member)
  if (stopped.outcome === 'running') throw new AppError('busy', `couldn't end the session of ${name}`)
  return removeTrees(context, stopped.agent)
}

/** For a member whose session has ended. If the gates keep one of its worktrees, the member stays. */
export const removeTrees = async (context: FleetContext, agent: FleetAgent): Promise<CrewRemoved> => {
  const { isolation, environments } = context
  const { store, clock, failpoint } = isolation
  const removed: IsolatedEnvironment[] = []
  const kept: { environment: IsolatedEnvironment; reasons: readonly GateAnswer[] }[] = []
  for (const { environment } of (await treesOf(context, agent.name)).toReversed()) {
    const outcome = await (await environments()).destroy(environment, { trigger: 'fleet', askedBy: agent.id })
    if (outcome.outcome === 'refused') kept.push({ environment, reasons: outcome.reasons })
    else removed.push(environment)
    await failpoint('crew.tree-removed')
  }
  if (kept.length > 0) return { agent, removed, kept }
  const now = (await store.fleetAgents.get(agent.id)) ?? agent
  if (!mayHaveSession(now.state) || now.state === 'spawning') {
    await store.fleetAgents.move(now.id, now.state, 'gone', { endedAt: clock(), session: undefined })
  }
  await failpoint('crew.gone')
  deleteAgentFiles(context, agent.name)
  return { agent, removed, kept }
}

/** Removes a member that never started working. The gates still keep a worktree with changes. Safe to repeat. */
export const undoMember = async (context: FleetContext, id: string): Promise<void> => {
  await cancelStart(context, id, 'stopped')
  const agent = await context.isolation.store.fleetAgents.get(id)
  if (agent === undefined || agent.kind !== 'crew' || agent.state === 'gone' || agent.workedAt !== undefined) return
  try {
    await removeTrees(context, agent)
  } catch (error) {
    context.isolation.log.warn("a crew member's worktree was kept", {
      agent: agent.name,
      error: toAppError(error).message,
    })
  }
}
