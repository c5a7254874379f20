import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { SlingRefusal } from '../../domain/fleet/sling-refusal.ts'
import { isClean } from '../../domain/removal/uncommitted.ts'
import { toWork } from '../../domain/work.ts'
import { freshen } from '../../isolation/codebases/base.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import { providerOf } from '../../isolation/provider-of.ts'
import { branchTip } from '../../runs/branch-tip.ts'
import type { Store } from '../../store/store.ts'
import { writeAgentFile } from '../agent-file.ts'
import type { FleetContext } from '../context.ts'
import { unhookItem } from '../items/change.ts'
import { beaconFor } from '../sessions/beacon.ts'
import { hasEnded } from '../stop-ended.ts'
import { treeOf } from '../tree.ts'
import { type Asker, moveToHooked, whyNotNow, whyNotUp } from './hook.ts'
import type { SlingOutcome } from './outcome.ts'

type Assignment = { readonly item: Item; readonly codebase: Codebase; readonly agent: FleetAgent }

/**
 * Gives the item to an idle worker. `outdated`: its worktree differs from a new one. `taken`: the worker has just been
 * given another item, or is ending.
 */
export const assign = async (
  context: FleetContext,
  asker: Asker,
  { item, codebase, agent }: Assignment,
): Promise<SlingOutcome | 'outdated' | 'taken'> => {
  const environment = await environmentOf(context, agent)
  if (environment === undefined || !(await isAsNew(context, codebase, environment))) return 'outdated'
  if (hasEnded(agent)) return 'outdated'
  return hookAndSend(context, asker, { item, codebase, agent }, environment)
}

/** Gives the item to a crew member, to be worked on in the member's worktree of its codebase. */
export const assignToCrew = async (
  context: FleetContext,
  asker: Asker,
  { item, codebase, name }: { readonly item: Item; readonly codebase: Codebase; readonly name: string },
): Promise<SlingOutcome> => {
  const { store, host } = context.isolation
  const agent = await store.fleetAgents.byName(host, name)
  if (agent?.kind !== 'crew')
    throw new AppError('not-found', `unknown crew member ${JSON.stringify(name.slice(0, 60))}`)
  const refused = (why: SlingRefusal): SlingOutcome => ({ outcome: 'refused', item, why })
  if (agent.itemId !== undefined) return refused({ kind: 'crew-busy', crew: name, item: agent.itemId })
  if (hasEnded(agent)) return refused({ kind: 'crew-asleep', crew: name, state: 'stopped' })
  if (agent.state !== 'working') return refused({ kind: 'crew-asleep', crew: name, state: agent.state })
  const environment = await store.environments.liveByWork(codebase.id, toWork('agent', name))
  if (environment?.status !== 'active') return refused({ kind: 'crew-elsewhere', crew: name, codebase: codebase.name })
  const given = await hookAndSend(context, asker, { item, codebase, agent }, environment)
  if (given === 'taken') throw new AppError('busy', `${name} is no longer waiting for an item`)
  return given
}

/** Unparks the item of an agent that is still running, and tells the agent to continue. */
export const resume = async (
  context: FleetContext,
  { by, conversation }: Asker,
  { item, codebase, agent }: Assignment,
): Promise<SlingOutcome> => {
  const { store, clock } = context.isolation
  const environment = await environmentOf(context, agent)
  if (environment === undefined) throw new AppError('not-found', `the worktree of ${agent.name} is gone`)
  await store.transaction(async (inside) => {
    const at = clock()
    const change = { kind: 'restarted', agent: agent.name, why: 'stopped' } as const
    if (!(await inside.items.move(item.id, { from: 'parked', to: 'hooked', change, by, at }))) {
      throw new AppError('busy', `item ${item.id} is no longer parked`)
    }
    if (conversation !== undefined) await inside.items.follow(item.id, conversation, at)
    const event = { kind: 'restarted', item: { ...item, state: 'hooked' }, agent: agent.name } as const
    await context.notify(inside, event, conversation)
  })
  const { session } = agent
  if (session !== undefined) {
    const text = `Item ${item.id} is no longer parked. Run \`coppice prime\` and continue with it.`
    await context.sessions.of(session.kind).send(session, text)
  }
  const now = (await store.items.get(item.id)) ?? item
  return { outcome: 'started', agent, item: now, environment, codebase, notices: [] }
}

/**
 * Hooks the item and sends it to the running program. Until it is sent, the agent is `spawning`, so that recovery sends
 * it again after a crash.
 */
const hookAndSend = async (
  context: FleetContext,
  asker: Asker,
  { item, codebase, agent }: Assignment,
  environment: IsolatedEnvironment,
): Promise<SlingOutcome | 'taken'> => {
  const { isolation } = context
  const { store, self, clock, failpoint } = isolation
  type Hooked = { readonly taken: FleetAgent } | { readonly why: SlingRefusal } | 'taken'
  const hooked = await store.transaction(async (inside): Promise<Hooked> => {
    const current = (await inside.items.get(item.id)) ?? item
    const why = (await whyNotUp(context, inside)) ?? (await whyNotNow(inside, asker, current))
    if (why !== undefined) return { why }
    // Meanwhile it may have been given another item, or be ending.
    const now = await inside.fleetAgents.get(agent.id)
    if (now?.state !== 'working' || now.itemId !== undefined || now.spawn !== agent.spawn) return 'taken'
    const place = { itemId: item.id, environmentId: environment.id, codebaseId: codebase.id }
    // Crashes during the last item don't count for this one.
    const patch = { ...place, restarts: 0, holder: self }
    if (!(await inside.fleetAgents.move(agent.id, 'working', 'spawning', patch))) return 'taken'
    const taken = { ...agent, ...patch, state: 'spawning', lastSignAt: clock() } as const
    await moveToHooked(inside, asker, current, taken)
    await inside.items.update(item.id, { environmentId: environment.id })
    return { taken }
  })
  if (hooked === 'taken') return hooked
  if ('why' in hooked) return { outcome: 'refused', item, why: hooked.why }
  const { taken } = hooked
  await failpoint('assign.hooked')
  try {
    const sent = await sendItem(context, taken, asker.conversation)
    await failpoint('assign.sent')
    const now = (await store.items.get(item.id)) ?? item
    return { outcome: 'started', agent: sent, item: now, environment, codebase, notices: [] }
  } catch (error) {
    await undoAssignment(context, taken).catch((undo: unknown) =>
      isolation.log.error('a failed assignment could not be undone', { agent: agent.name, error: undo }),
    )
    throw error
  }
}

/** Sends the item to the agent's program, and marks the agent as working. Repeating it only repeats the message. */
export const sendItem = async (context: FleetContext, agent: FleetAgent, askedBy?: string): Promise<FleetAgent> => {
  const { isolation, sessions } = context
  const { store, clock } = isolation
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  const codebase = await store.codebases.get(agent.codebaseId)
  const environment = await environmentOf(context, agent)
  const { session } = agent
  if (item === undefined || codebase === undefined || environment === undefined || session === undefined) {
    throw new AppError('not-found', `${agent.name} has no session, item or worktree`)
  }
  writeAgentFile(await treeOf(isolation, codebase, environment), agent, item)
  await sessions.of(session.kind).send(session, beaconFor(agent, item, codebase, environment))
  const now = clock()
  const began = { workedAt: agent.workedAt ?? now, lastSignAt: now }
  await store.transaction(async (inside) => {
    if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'working', began))) {
      throw new AppError('busy', `${agent.name} was stopped while it was starting on item ${item.id}`)
    }
    await context.notify(inside, { kind: 'started', item, agent: agent.name }, askedBy)
  })
  return { ...agent, ...began, state: 'working' }
}

/** The item was never sent: the agent is idle again, and the item open. */
const undoAssignment = (context: FleetContext, agent: FleetAgent): Promise<void> =>
  context.isolation.store.transaction(async (inside: Store) => {
    if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'working', { itemId: undefined }))) return
    const item = agent.itemId === undefined ? undefined : await inside.items.get(agent.itemId)
    if (item?.state !== 'hooked') return
    const undone = { to: 'open', agent: agent.name, why: 'not-started', by: 'fleet', withoutEnvironment: true } as const
    await unhookItem(context, inside, item, undone)
  })

const environmentOf = async (
  { isolation: { store } }: Pick<FleetContext, 'isolation'>,
  { environmentId }: FleetAgent,
): Promise<IsolatedEnvironment | undefined> => {
  const found = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  return found?.status === 'active' ? found : undefined
}

/** Clean, without commits of its own, and at the commit that a new worktree would start from. */
const isAsNew = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<boolean> => {
  try {
    await freshen(isolation, codebase, { maxAgeMs: isolation.settings.fetchFreshSeconds * 1000 })
    const { base } = await baseAndConfig(isolation, codebase)
    if ((await branchTip(isolation, codebase, environment)) !== base.sha) return false
    const tree = await treeOf(isolation, codebase, environment)
    const provider = await providerOf(isolation, environment)
    if ((await provider.headBranch(tree)) !== environment.branch) return false
    return isClean((await provider.glance(isolation, tree, { signal: undefined })).dirty)
  } catch (error) {
    isolation.log.warn("an idle agent's worktree can't be compared with its base", { error: toAppError(error).message })
    return false
  }
}
