import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { type Item, isSettled } from '../../domain/fleet/item.ts'
import type { PoolSettings } from '../../domain/fleet/pool.ts'
import type { SlingRefusal } from '../../domain/fleet/sling-refusal.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'
import { freeNames } from '../names.ts'
import { newAgent } from '../new-agent.ts'
import { membersOf } from '../pools.ts'

/** Who slings the item, and the conversation that then follows it. */
export type Asker = {
  readonly by: string
  readonly conversation?: string | undefined
  /** It couldn't land: its review ends, and work on it continues. */
  readonly fromReview?: boolean
}

export type Hooking = {
  /** Undefined for a worker that waits for an item. */
  readonly item: Item | undefined
  readonly pool: PoolSettings
  readonly codebase: Codebase
  /** The name of the agent's program. */
  readonly program: string
}

export type Hooked = { readonly agent: FleetAgent; readonly item: Item | undefined }
type Refused = { readonly why: SlingRefusal }

/**
 * Takes a name, inserts the agent's row and hooks the item in one transaction. If two callers want the same item or
 * name, only one gets it.
 */
export const hookNewAgent = async (
  context: FleetContext,
  asker: Asker,
  hooking: Hooking,
): Promise<Hooked | Refused> => {
  const { isolation } = context
  const { item, pool, codebase, program } = hooking
  const kept = await keptEnvironment(isolation.store, item)
  // If the item has an environment, the new agent takes the name of the one that it was created for.
  const names = kept === undefined ? freeNames(context, pool) : [kept.work.id]
  for await (const name of names) {
    const agent = newAgent(context, {
      name,
      kind: 'worker',
      pool: pool.name,
      codebaseId: codebase.id,
      program,
      itemId: item?.id,
      environmentId: kept?.id,
    })
    const outcome = await isolation.store.transaction(
      async (inside) => (await noRoom(context, inside, pool)) ?? hook(inside, asker, agent, item),
    )
    if (outcome !== 'name-taken') return outcome
  }
  if (kept === undefined) throw new AppError('name-invalid', `the pool ${pool.name} has no free names`)
  throw await ownerAtWork(isolation, kept)
}

const keptEnvironment = async (store: Store, item: Item | undefined): Promise<IsolatedEnvironment | undefined> => {
  const kept = item?.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
  return kept?.status === 'active' ? kept : undefined
}

/** The item's environment was created for an agent that is still there. */
const ownerAtWork = async (
  { store, host }: Pick<FleetContext['isolation'], 'store' | 'host'>,
  { branch, work: { id: name } }: IsolatedEnvironment,
): Promise<AppError> => {
  const owner = await store.fleetAgents.byName(host, name)
  return new AppError('busy', `the item's work is in ${branch}, the worktree of ${name}`, {
    remedy:
      owner?.kind === 'crew' ? `give it to ${name}: add --crew ${shellWord(name)}` : `try again when ${name} is gone`,
  })
}

const hook = async (
  store: Store,
  asker: Asker,
  agent: FleetAgent,
  item: Item | undefined,
): Promise<Hooked | Refused | 'name-taken'> => {
  const current = item && ((await store.items.get(item.id)) ?? item)
  const why = current && (await whyNotNow(store, asker, current))
  if (why !== undefined) return { why }
  const inserted = await store.fleetAgents.insert(agent)
  if (inserted === 'name-taken') return 'name-taken'
  if (current === undefined) return { agent, item: undefined }
  if (inserted === 'item-taken') throw justTaken(current)
  return { agent, item: await moveToHooked(store, asker, current, agent) }
}

/** Call in the transaction that gives the agent the item. */
export const moveToHooked = async (
  store: Store,
  { by, conversation }: Asker,
  item: Item,
  { name, pool, createdAt, lastSignAt }: FleetAgent,
): Promise<Item> => {
  const at = Math.max(createdAt, lastSignAt)
  const change = { kind: 'hooked', from: item.state, agent: name, pool } as const
  // Thrown to roll the transaction back.
  if (!(await store.items.move(item.id, { from: item.state, to: 'hooked', change, by, at }))) throw justTaken(item)
  if (conversation !== undefined) await store.items.follow(item.id, conversation, at)
  return { ...item, state: 'hooked', parked: undefined }
}

const justTaken = ({ id }: Item): AppError => new AppError('busy', `somebody else has just taken item ${id}`)

/** Why the item can't be given to an agent now. */
export const whyNotNow = async (
  store: Store,
  { fromReview = false }: Asker,
  item: Item,
): Promise<SlingRefusal | undefined> => {
  const { state } = item
  if (state === 'landed' || state === 'closed') return { kind: 'settled', state }
  if (state === 'in_review' && !fromReview) return { kind: 'in-review' }
  const [agent] = await store.fleetAgents.ofItems([item.id])
  if (agent !== undefined) return { kind: 'hooked', agent: agent.name }
  const needed = await Promise.all(item.after.map((id) => store.items.get(id)))
  const after = needed.flatMap((one) => (one !== undefined && !isSettled(one.state) ? [one.id] : []))
  return after.length === 0 ? undefined : { kind: 'waits', after }
}

/** Why this host's fleet may not start anything. Locks its state until the transaction ends. */
export const whyNotUp = async (
  { isolation: { host } }: Pick<FleetContext, 'isolation'>,
  store: Store,
): Promise<SlingRefusal | undefined> => {
  const { state, why } = await store.fleetControl.lock(host)
  if (state === 'down') return { kind: 'fleet-down' }
  return state === 'paused' ? { kind: 'fleet-paused', why } : undefined
}

/** Why there is no room for another worker. `whyNotUp` locks out other spawns of this host. */
const noRoom = async (context: FleetContext, store: Store, pool: PoolSettings): Promise<Refused | undefined> => {
  const { settings, host } = context.isolation
  const down = await whyNotUp(context, store)
  if (down !== undefined) return { why: down }
  const agents = await store.fleetAgents.live({ host })
  if (membersOf(pool, agents).length >= pool.max) return { why: { kind: 'pool-full', pool: pool.name, max: pool.max } }
  const workers = agents.filter(({ kind }) => kind === 'worker').length
  return workers >= settings.maxAgents ? { why: { kind: 'fleet-full', max: settings.maxAgents } } : undefined
}
