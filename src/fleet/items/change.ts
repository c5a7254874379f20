import { canItemBecome, type Item, type ParkReason, type UnhookReason } from '../../domain/fleet/item.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'

type Notifier = Pick<FleetContext, 'notify'> & { readonly isolation: Pick<FleetContext['isolation'], 'clock'> }

/** Marks the item as waiting for a person. Call in a transaction. False if it is settled. */
export const parkItem = async (
  { notify, isolation: { clock } }: Notifier,
  store: Store,
  item: Item,
  { reason, by }: { readonly reason: ParkReason; readonly by: string },
): Promise<boolean> => {
  if (item.state === 'parked') return true
  if (!canItemBecome(item.state, 'parked')) return false
  const moved = await store.items.move(item.id, {
    from: item.state,
    to: 'parked',
    change: { kind: 'parked', from: item.state, reason },
    patch: { parked: reason },
    by,
    at: clock(),
  })
  if (moved) await notify(store, { kind: 'parked', item: { ...item, state: 'parked', parked: reason }, reason })
  return moved
}

export type Unhook = {
  readonly to: 'open' | 'in_review' | 'closed'
  readonly agent: string
  readonly why: UnhookReason
  readonly by: string
  /** The item's environment is gone, or is removed with the agent. */
  readonly withoutEnvironment?: boolean
}

/** Ends the agent's work on the item. Call in the transaction that removes the item from the agent. */
export const unhookItem = async (
  { notify, isolation: { clock } }: Notifier,
  store: Store,
  item: Item,
  { to, agent, why, by, withoutEnvironment = false }: Unhook,
): Promise<boolean> => {
  const moved = await store.items.move(item.id, {
    from: item.state,
    to,
    change: { kind: 'unhooked', to, agent, why },
    patch: withoutEnvironment ? { environmentId: undefined } : {},
    by,
    at: clock(),
  })
  // A failed start is reported by the command that asked for it.
  if (!moved || why === 'not-started') return moved
  if (to === 'open') await notify(store, { kind: 'reopened', item: { ...item, state: to } })
  if (to === 'closed') await notify(store, { kind: 'closed', item: { ...item, state: to } })
  return moved
}
