import { shellWord } from '../../domain/text/shell-word.ts'
import { isProvablyDead } from '../../isolation/agents-inside.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { type FleetAgent, mayHaveSession } from '../../domain/fleet/agent.ts'
import { isSettled, type Item, type ParkReason, toNote } from '../../domain/fleet/item.ts'
import type { BranchOutcome } from '../../domain/removal/branch-note.ts'
import type { GateAnswer } from '../../domain/removal/gates.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { branchOutcomeOf } from '../../isolation/remove-outcome.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'
import { deleteAgentFiles } from '../end-session.ts'
import { abandonFormula } from '../formulas/run-formula.ts'
import { withdrawLandings } from '../landing/pick.ts'
import { itemNumbered } from './add.ts'
import { parkItem, unhookItem } from './change.ts'
import { noteInWorktree } from './note-in-worktree.ts'

export type Closed = {
  readonly item: Item
  /** It was finished before; nothing was changed. */
  readonly already: boolean
  readonly worktree: ClosedWorktree | undefined
}

/** The item's worktree, and why it was kept. Without reasons, it was removed, or is no longer tracked. */
export type ClosedWorktree = {
  readonly environment: IsolatedEnvironment
  readonly kept: readonly GateAnswer[]
  /** Undefined unless it was removed. */
  readonly branch: BranchOutcome | undefined
}

/**
 * Closes an item, and removes its worktree if the gates allow it. Throws while an agent is working on it, since a live
 * agent's worktree is never removed.
 */
export const closeItem = async (context: FleetContext, id: number, by: string): Promise<Closed> => {
  const { store, host } = context.isolation
  const item = await itemNumbered(store, id)
  if (isSettled(item.state)) return { item, already: true, worktree: undefined }
  const [agent] = await store.fleetAgents.ofItems([id])
  if (agent !== undefined) await assertNotRunning(context, agent, item)
  const isClosed = await store.transaction(async (inside) => {
    // Prevents this host from starting an agent or assigning an item until the transaction ends.
    await inside.fleetControl.lock(host)
    // Read before its agent: another host that hooks the item after this read also moves it, so `close` fails.
    const current = await itemNumbered(inside, id)
    const [now] = await inside.fleetAgents.ofItems([id])
    const isAsSeen = now?.id === agent?.id && now?.spawn === agent?.spawn && now?.state === agent?.state
    if (isSettled(current.state)) return false
    if (!isAsSeen || !(await close(context, inside, current, { agent, by }))) {
      throw new AppError('busy', `item ${id} has just been changed`, { remedy: 'try again' })
    }
    return true
  })
  if (isClosed && agent?.kind === 'worker') deleteAgentFiles(context, agent.name)
  const worktree = await removeWorktree(context, item)
  return { item: await itemNumbered(store, id), already: !isClosed, worktree }
}

/** False if it has changed since it was read. */
const close = async (
  context: FleetContext,
  store: Store,
  item: Item,
  { agent, by }: { readonly agent: FleetAgent | undefined; readonly by: string },
): Promise<boolean> => {
  const { clock } = context.isolation
  if (agent !== undefined) {
    if (!(await abandonFormula(context, store, agent.id))) {
      throw new AppError('busy', `${agent.name} is just finishing item ${item.id}`, { remedy: 'try again' })
    }
    await releaseAgent(store, agent, clock())
    const gone = { to: 'closed', agent: agent.name, why: 'closed', by, withoutEnvironment: true } as const
    return unhookItem(context, store, item, gone)
  }
  const change = { kind: 'state', from: item.state, to: 'closed' } as const
  const patch = { environmentId: undefined }
  await withdrawLandings(store, item.id, clock())
  const closing = { from: item.state, to: 'closed', change, patch, by, at: clock() } as const
  if (!(await store.items.move(item.id, closing))) return false
  await context.notify(store, { kind: 'closed', item: { ...item, state: 'closed' } })
  return true
}

/** Removes the item from its agent. A worker is gone with its item; a crew member stays. */
const releaseAgent = async (store: Store, { id, kind, state, name }: FleetAgent, at: number): Promise<void> => {
  if (kind === 'crew') return store.fleetAgents.update(id, { itemId: undefined })
  if (await store.fleetAgents.move(id, state, 'gone', { endedAt: at, session: undefined })) return
  throw new AppError('busy', `${name} was just started again`)
}

const assertNotRunning = async (context: FleetContext, agent: FleetAgent, { id }: Item): Promise<void> => {
  if (agent.host !== context.isolation.host) {
    throw new AppError('refused', `the agent of item ${id} is on another machine`, { remedy: 'close the item there' })
  }
  if (!mayHaveSession(agent.state) && (await isProvablyDead(context.isolation, agent))) return
  throw new AppError('refused', `${agent.name} is working on item ${id}`, {
    remedy: remedy`stop it first: ${coppice(`fleet down ${shellWord(agent.name)}`)}`,
  })
}

const removeWorktree = async (context: FleetContext, { id, environmentId }: Item): Promise<Closed['worktree']> => {
  const { isolation, environments } = context
  const { store } = isolation
  const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  if (environment === undefined || environment.status !== 'active') return undefined
  const codebase = await store.codebases.get(environment.codebaseId)
  await noteInWorktree(context, codebase, environment, id)
  try {
    const outcome = await (await environments()).destroy(environment, { trigger: 'fleet' })
    const kept = outcome.outcome === 'refused' ? outcome.reasons : []
    return { environment, kept, branch: branchOutcomeOf(outcome) }
  } catch (error) {
    const why = toAppError(error).message
    return {
      environment,
      kept: [{ gate: 'ours', answer: 'cannot-tell', fact: { kind: 'unknown', why } }],
      branch: undefined,
    }
  }
}

/** Parks an item on a person's request, until it is slung again. Its agent keeps its session and worktree. */
export const parkByHand = (
  context: FleetContext,
  itemId: number,
  { note, by }: { readonly note: string | undefined; readonly by: string },
): Promise<Item> =>
  context.isolation.store.transaction(async (inside) => {
    const item = await itemNumbered(inside, itemId)
    const reason: ParkReason = { kind: 'asked', note: note === undefined ? undefined : toNote(note) }
    // With a question of its own, it would look as if that had been asked.
    if (item.state === 'parked' && note !== undefined) {
      throw new AppError('refused', `item ${itemId} is parked already`, {
        remedy: remedy`see why: ${coppice(`item show ${itemId}`)}`,
      })
    }
    if (!(await parkItem(context, inside, item, { reason, by }))) {
      throw new AppError('refused', `item ${itemId} is ${inWords(item.state)}, so it can't be parked`, {
        remedy: addAnother,
      })
    }
    return itemNumbered(inside, itemId)
  })

const addAnother = remedy`add a new one: ${coppice('item add <title>')}`

const inWords = (state: Item['state']): string => state.replace('_', ' ')

/** Puts a parked item without an agent back into the queue. */
export const reopenItem = (context: FleetContext, itemId: number, by: string): Promise<Item> =>
  context.isolation.store.transaction(async (inside) => {
    const { clock } = context.isolation
    const item = await itemNumbered(inside, itemId)
    const [agent] = await inside.fleetAgents.ofItems([itemId])
    if (item.state === 'parked' && agent !== undefined) {
      throw new AppError('refused', `item ${itemId} has an agent, ${agent.name}`, {
        remedy: remedy`let it continue: ${coppice(`sling ${itemId}`)}`,
      })
    }
    if (item.state !== 'parked') {
      throw new AppError(
        'refused',
        `only a parked item can be reopened, and item ${itemId} is ${inWords(item.state)}`,
        {
          remedy: isSettled(item.state) ? addAnother : remedy`see its history: ${coppice(`item show ${itemId}`)}`,
        },
      )
    }
    const change = { kind: 'state', from: 'parked', to: 'open' } as const
    if (!(await inside.items.move(itemId, { from: 'parked', to: 'open', change, by, at: clock() }))) {
      throw new AppError('busy', `item ${itemId} has just been changed`, { remedy: 'try again' })
    }
    const reopened = await itemNumbered(inside, itemId)
    await context.notify(inside, { kind: 'reopened', item: reopened })
    return reopened
  })
