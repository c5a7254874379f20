import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { PoolSettings } from '../../domain/fleet/pool.ts'
import type { Notice } from '../../domain/notice.ts'
import { toWork } from '../../domain/work.ts'
import type { LimitReport } from '../../isolation/resolve/resolution.ts'
import { resolveIsolation } from '../../isolation/resolve/resolve.ts'
import type { FleetContext } from '../context.ts'
import { endInterruptedStart } from '../end-session.ts'
import { startSession } from '../start-session.ts'
import type { Hooked } from './hook.ts'
import { undoSling } from './undo-sling.ts'

export type Spawning = Hooked & {
  readonly pool: PoolSettings
  readonly codebase: Codebase
  readonly by: string
  readonly conversation?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export type Spawned = {
  readonly agent: FleetAgent
  readonly environment: IsolatedEnvironment
  readonly notices: readonly Notice[]
}

/** Creates the environment and starts the session. A failure undoes exactly what this created. */
export const spawn = async (
  context: FleetContext,
  spawning: Spawning,
): Promise<Spawned | { readonly report: LimitReport }> => {
  const { isolation } = context
  const { agent } = spawning
  try {
    await isolation.failpoint('sling.hooked')
    const made = await environmentFor(context, spawning)
    if ('report' in made) {
      await undoSling(context, agent.id)
      return made
    }
    return { ...made, agent: await startIn(context, spawning, made.environment) }
  } catch (error) {
    // If it can't be undone now, recovery does it, since the row names a holder that will be dead.
    await undoSling(context, agent.id).catch((undo: unknown) =>
      isolation.log.error('an agent that failed to start could not be undone', { agent: agent.name, error: undo }),
    )
    throw error
  }
}

const startIn = async (
  context: FleetContext,
  { agent, item, pool, codebase, conversation }: Spawning,
  environment: IsolatedEnvironment,
): Promise<FleetAgent> => {
  const { store, clock, failpoint } = context.isolation
  await store.transaction(async (inside) => {
    await inside.fleetAgents.update(agent.id, { environmentId: environment.id })
    if (item !== undefined) await inside.items.update(item.id, { environmentId: environment.id })
  })
  await failpoint('sling.placed')
  const placed: FleetAgent = { ...agent, environmentId: environment.id }
  const session = await startSession(context, { agent: placed, item, codebase, environment, pool, resume: false })
  const now = clock()
  const began = { state: 'working', session, workedAt: now, lastSignAt: now } as const
  const isOurs = await store.transaction(async (inside) => {
    const { state, ...patch } = began
    if (!(await inside.fleetAgents.move(agent.id, 'spawning', state, patch))) return false
    if (item === undefined) return true
    const current = (await inside.items.get(item.id)) ?? item
    await context.notify(inside, { kind: 'started', item: current, agent: agent.name }, conversation)
    return true
  })
  if (!isOurs) await endInterruptedStart(context, { ...placed, session })
  await failpoint('sling.working')
  return { ...placed, ...began }
}

const environmentFor = async (
  { isolation, environments }: FleetContext,
  { agent, codebase, pool, by, signal }: Spawning,
): Promise<Omit<Spawned, 'agent'> | { readonly report: LimitReport }> => {
  const { environmentId } = agent
  const kept = environmentId === undefined ? undefined : await isolation.store.environments.get(environmentId)
  if (kept !== undefined) return { environment: kept, notices: [] }
  isolation.progress(`creating a worktree for ${agent.name}`)
  const resolved = await resolveIsolation(isolation, await environments(), {
    codebase,
    work: toWork('agent', agent.name),
    hints: {},
    createdBy: by,
    provider: pool.isolation,
    ...(signal !== undefined && { signal }),
  })
  if (resolved.outcome === 'limit') return { report: resolved.report }
  return { environment: resolved.environment, notices: resolved.notices }
}
