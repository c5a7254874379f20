import type { Codebase } from '../../domain/environment.ts'
import type { Landing } from '../../domain/fleet/landing.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'

export type Picked = {
  /** In queue order. */
  readonly ready: readonly Landing[]
  /** How many wait for an agent that is just finishing. */
  readonly finishing: number
}

/** What can land now. Withdraws what no longer should. */
export const pickReady = async (context: FleetContext, codebase: Codebase): Promise<Picked> => {
  const { store, clock } = context.isolation
  const ready: Landing[] = []
  let finishing = 0
  for (const landing of await store.landings.pending(codebase.id)) {
    if (landing.state !== 'queued') continue
    const standing = await standingOf(store, landing)
    if (standing === 'ready') ready.push(landing)
    if (standing === 'finishing') finishing += 1
    if (standing === 'withdrawn') await store.landings.move(landing.id, 'queued', 'superseded', clock())
  }
  return { ready, finishing }
}

export type Standing = 'ready' | 'finishing' | 'held' | 'withdrawn'

/** An item's branch lands only while the item waits for that, and after its agent has left its worktree. */
export const standingOf = async (store: Store, { itemId, mergeCommit }: Landing): Promise<Standing> => {
  if (itemId === undefined) return 'ready'
  const item = await store.items.get(itemId)
  switch (item?.state) {
    case 'in_review':
      return (await store.formulaRuns.latestOfItem(itemId))?.state === 'running' ? 'finishing' : 'ready'
    case 'hooked':
      return (await store.formulaRuns.latestOfItem(itemId))?.state === 'running' ? 'finishing' : 'held'
    case 'parked':
      // It's merged already, and only has to be verified.
      return mergeCommit === undefined ? 'held' : 'ready'
    case 'open':
    case 'landed':
    case 'closed':
    case undefined:
      return 'withdrawn'
  }
}

/** The item was closed: its branch won't land, unless that is just happening. Call in a transaction. */
export const withdrawLandings = async (store: Store, itemId: number, at: number): Promise<void> => {
  for (const { id, codebaseId, state } of await store.landings.list({
    itemId,
    states: ['queued', 'testing'],
    limit: 10,
  })) {
    const { push } = await store.landings.queue(codebaseId)
    if (push?.members.some((member) => member.id === id) !== true) {
      await store.landings.move(id, state, 'superseded', at)
    }
  }
}
