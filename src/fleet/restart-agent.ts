import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { FleetAgent, FleetAgentState } from '../domain/fleet/agent.ts'
import { AppError } from '../domain/errors.ts'
import type { Item } from '../domain/fleet/item.ts'
import type { FleetContext } from './context.ts'
import { endInterruptedStart, endSession } from './end-session.ts'
import { takeOverFormula } from './formulas/run-formula.ts'
import { assertDatabaseInConfig } from './sessions/database.ts'
import { whyNotUp } from './sling/hook.ts'
import { startSession } from './start-session.ts'

export type RestartRequest = {
  readonly by: string
  /** The conversation to follow the item. */
  readonly conversation?: string | undefined
  /** Counts towards the number of restarts. */
  readonly afterCrash?: boolean
  /** A person wants work on a parked item to continue. Without it, the item stays parked. */
  readonly unpark?: boolean
}

export type RestartedAgent = {
  readonly agent: FleetAgent
  readonly environment: IsolatedEnvironment
  readonly codebase: Codebase
}

/**
 * Restarts the session of a stopped or crashed agent, in its own environment and with its own item. Throws while a
 * process of its last session is still running.
 */
export const restartAgent = async (
  context: FleetContext,
  found: FleetAgent,
  its: Item | undefined,
  { by, conversation, afterCrash = false, unpark = false }: RestartRequest,
): Promise<RestartedAgent> => {
  const { isolation } = context
  const { store, clock, ids, self, settings, failpoint } = isolation
  assertDatabaseInConfig(isolation)
  const { agent, item } = await afterFinishing(context, found, its)
  const from = agent.state
  if (from !== 'stopped' && from !== 'crashed') {
    throw new AppError('busy', `${agent.name} is ${agent.state}`)
  }
  const environment = agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId)
  const codebase = await store.codebases.get(agent.codebaseId)
  if (environment === undefined || codebase === undefined || environment.status !== 'active') {
    throw new AppError('not-found', `the worktree of ${agent.name} is ${environment?.status ?? 'gone'}`)
  }
  if (!(await endSession(context, agent, { graceMs: 0 }))) {
    throw new AppError('busy', `some processes of ${agent.name}'s last session are still running`)
  }
  // A person who lets it continue gives it all its restarts again.
  const restarts = afterCrash ? agent.restarts + 1 : unpark ? 0 : agent.restarts
  // With a new spawn token, so that commands of the last session are refused.
  const restarted = {
    spawn: ids(),
    session: undefined,
    drainingSince: undefined,
    restarts,
    holder: self,
    lastSignAt: clock(),
  }
  const spawning: FleetAgent = { ...agent, ...restarted, state: 'spawning' }
  const isOurs = await store.transaction(async (inside) => {
    if ((await whyNotUp(context, inside)) !== undefined) throw new AppError('busy', "the fleet isn't running")
    if (!(await inside.fleetAgents.move(agent.id, from, 'spawning', restarted))) return false
    if (conversation !== undefined && item !== undefined) await inside.items.follow(item.id, conversation, clock())
    return true
  })
  if (!isOurs) throw new AppError('busy', `somebody else is starting ${agent.name}`)
  await failpoint('restart.spawning')
  const pool = settings.pools.find(({ name }) => name === agent.pool)
  try {
    const resume = (pool?.wake ?? 'resume') === 'resume'
    const session = await startSession(context, { agent: spawning, item, codebase, environment, pool, resume })
    const now = clock()
    const isStarted = await store.transaction(async (inside) => {
      const began = { session, lastSignAt: now, workedAt: agent.workedAt ?? now }
      if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'working', began))) return false
      if (item !== undefined)
        await recordRestart(context, inside, { item, agent: agent.name, by, conversation, afterCrash, unpark })
      return true
    })
    if (!isStarted) await endInterruptedStart(context, { ...spawning, session })
    await failpoint('restart.working')
    return { agent: { ...spawning, state: 'working', session }, environment, codebase }
  } catch (error) {
    await cancelStart(context, agent.id, from)
    throw error
  }
}

/**
 * Finishes what `coppice done` in the last session has begun, before a new session starts: finished later, it would end
 * the new one.
 */
const afterFinishing = async (
  context: FleetContext,
  agent: FleetAgent,
  item: Item | undefined,
): Promise<{ readonly agent: FleetAgent; readonly item: Item | undefined }> => {
  const { store } = context.isolation
  const begun = await store.formulaRuns.runningOf(agent.id)
  if (begun === undefined) return { agent, item }
  const { outcome } = await takeOverFormula(context, begun)
  const now = await store.fleetAgents.get(agent.id)
  if (outcome === 'busy') throw new AppError('busy', `\`coppice done\` of ${agent.name} is still running`)
  if (now === undefined || now.state === 'gone') throw new AppError('busy', `${agent.name} has just finished`)
  return { agent: now, item: now.itemId === undefined ? undefined : await store.items.get(now.itemId) }
}

/** Notes the restart in the item's history. With `unpark`, a parked item is hooked again. */
const recordRestart = async (
  context: FleetContext,
  store: FleetContext['isolation']['store'],
  {
    item,
    agent,
    by,
    conversation,
    afterCrash,
    unpark,
  }: Required<RestartRequest> & { readonly item: Item; readonly agent: string },
): Promise<void> => {
  const at = context.isolation.clock()
  const current = (await store.items.get(item.id)) ?? item
  const change = { kind: 'restarted', agent, why: afterCrash ? 'crashed' : 'stopped' } as const
  if (current.state === 'parked' && !unpark) return
  if (current.state === 'parked') await store.items.move(item.id, { from: 'parked', to: 'hooked', change, by, at })
  else await store.items.note(item.id, change, { by, at })
  await context.notify(store, { kind: 'restarted', item: { ...current, state: 'hooked' }, agent }, conversation)
}

/** Undoes a start that didn't finish. Keeps the agent's environment and item. */
export const cancelStart = async (
  context: FleetContext,
  agentId: string,
  to: Extract<FleetAgentState, 'stopped' | 'crashed'>,
): Promise<void> => {
  const { store } = context.isolation
  const agent = await store.fleetAgents.get(agentId)
  if (agent === undefined || agent.state !== 'spawning') return
  if (!(await endSession(context, agent, { graceMs: 0 }))) return
  await store.fleetAgents.move(agentId, 'spawning', to, { session: undefined })
}
