import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { FleetAgent, FleetAgentState } from '../domain/fleet/agent.ts'
import { AppError } from '../domain/errors.ts'
import type { Item } from '../domain/fleet/item.ts'
import type { FleetContext } from './context.ts'
import { endSession } from './end-session.ts'
import { finishFormula } from './formulas/run-formula.ts'
import { assertDatabaseInConfig } from './sessions/database.ts'
import { whyNotUp } from './sling/hook.ts'
import { startSession } from './start-session.ts'

export type WakeRequest = {
  readonly by: string
  /** The conversation that is told what becomes of the item. */
  readonly conversation?: string | undefined
  /** It crashed: counts towards the number of restarts. */
  readonly afterCrash?: boolean
  /** A person has decided: a parked item is worked on again. Otherwise it goes on waiting. */
  readonly unpark?: boolean
}

export type Awake = {
  readonly agent: FleetAgent
  readonly environment: IsolatedEnvironment
  readonly codebase: Codebase
}

/**
 * Starts the session of an agent that has stopped or crashed, in its own environment, with its own item. Never while
 * something of its earlier life is running.
 */
export const wakeAgent = async (
  context: FleetContext,
  found: FleetAgent,
  its: Item | undefined,
  { by, conversation, afterCrash = false, unpark = false }: WakeRequest,
): Promise<Awake> => {
  const { isolation } = context
  const { store, clock, ids, self, settings, failpoint } = isolation
  assertDatabaseInConfig(isolation)
  const { agent, item } = await afterFinishing(context, found, its)
  const asleep = agent.state
  if (asleep !== 'stopped' && asleep !== 'crashed') {
    throw new AppError('busy', `${agent.name} is ${agent.state}`)
  }
  const environment = agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId)
  const codebase = await store.codebases.get(agent.codebaseId)
  if (environment === undefined || codebase === undefined || environment.status !== 'active') {
    throw new AppError('not-found', `the worktree of ${agent.name} is ${environment?.status ?? 'gone'}`)
  }
  if (!(await endSession(context, agent, { graceMs: 0 }))) {
    throw new AppError('busy', `something of ${agent.name}'s last session is still running`)
  }
  const restarts = agent.restarts + (afterCrash ? 1 : 0)
  // A new life: commands of the last one are refused.
  const life = {
    spawn: ids(),
    session: undefined,
    drainingSince: undefined,
    restarts,
    holder: self,
    lastSignAt: clock(),
  }
  const spawning: FleetAgent = { ...agent, ...life, state: 'spawning' }
  const isOurs = await store.transaction(async (inside) => {
    if ((await whyNotUp(context, inside)) !== undefined) throw new AppError('busy', "the fleet isn't running")
    if (!(await inside.fleetAgents.move(agent.id, asleep, 'spawning', life))) return false
    if (conversation !== undefined && item !== undefined) await inside.items.follow(item.id, conversation, clock())
    return true
  })
  if (!isOurs) throw new AppError('busy', `somebody else is starting ${agent.name}`)
  await failpoint('wake.spawning')
  const pool = settings.pools.find(({ name }) => name === agent.pool)
  try {
    const resume = (pool?.wake ?? 'resume') === 'resume'
    const session = await startSession(context, { agent: spawning, item, codebase, environment, pool, resume })
    const now = clock()
    await store.transaction(async (inside) => {
      const began = { session, lastSignAt: now, workedAt: agent.workedAt ?? now }
      if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'working', began))) return
      if (item !== undefined)
        await hookAgain(context, inside, { item, agent: agent.name, by, conversation, afterCrash, unpark })
    })
    await failpoint('wake.working')
    return { agent: { ...spawning, state: 'working', session }, environment, codebase }
  } catch (error) {
    await sleepAgain(context, agent.id, asleep)
    throw error
  }
}

/** What its last life had begun to finish comes first: finished later, it would end the new one at work. */
const afterFinishing = async (
  context: FleetContext,
  agent: FleetAgent,
  item: Item | undefined,
): Promise<{ readonly agent: FleetAgent; readonly item: Item | undefined }> => {
  const { store } = context.isolation
  const begun = await store.formulaRuns.runningOf(agent.id)
  if (begun === undefined) return { agent, item }
  const { outcome } = await finishFormula(context, begun)
  const now = await store.fleetAgents.get(agent.id)
  if (outcome === 'busy') throw new AppError('busy', `what ${agent.name} had begun is just being finished`)
  if (now === undefined || now.state === 'gone') throw new AppError('busy', `${agent.name} has just finished`)
  return { agent: now, item: now.itemId === undefined ? undefined : await store.items.get(now.itemId) }
}

const hookAgain = async (
  context: FleetContext,
  store: FleetContext['isolation']['store'],
  {
    item,
    agent,
    by,
    conversation,
    afterCrash,
    unpark,
  }: Required<WakeRequest> & { readonly item: Item; readonly agent: string },
): Promise<void> => {
  const at = context.isolation.clock()
  const current = (await store.items.get(item.id)) ?? item
  const change = { kind: 'restarted', agent, why: afterCrash ? 'crashed' : 'stopped' } as const
  if (current.state === 'parked' && !unpark) return
  if (current.state === 'parked') await store.items.move(item.id, { from: 'parked', to: 'hooked', change, by, at })
  else await store.items.note(item.id, change, { by, at })
  await context.tell(store, { kind: 'restarted', item: { ...current, state: 'hooked' }, agent }, conversation)
}

/** Its environment and its item stay as they were. */
export const sleepAgain = async (
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
