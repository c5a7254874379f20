import type { ParkReason } from '../../domain/fleet/item.ts'
import { parkItem } from '../items/change.ts'
import { about, type Finding, type RowContext } from './row.ts'
import type { Round, Seen } from './seen.ts'
import { whoseTurn } from './supervisor.ts'

/** What the item's history says about who parked or restarted it. */
export const BY = 'patrol'

/**
 * Leaves the item to a person, or to the supervisor first, if there is one. Agent, worktree and hook stay together:
 * nothing that was done so far is given up.
 */
export const giveUp = async (
  context: RowContext,
  seen: Seen,
  round: Round,
  { row, reason }: { readonly row: string; readonly reason: ParkReason },
): Promise<Finding | undefined> => {
  const { agent } = seen
  const turn = await whoseTurn(context, seen, round, { row, problem: reason })
  if (turn === 'waiting') return undefined
  if (turn !== 'person') return { ...about(agent, row), did: 'told', supervisor: turn.supervisor }
  const isParked = await context.isolation.store.transaction(async (inside) => {
    const current = await inside.fleetAgents.get(agent.id)
    const item = agent.itemId === undefined ? undefined : await inside.items.get(agent.itemId)
    // Somebody else may have dealt with it meanwhile.
    if (item?.state !== 'hooked' || current?.itemId !== item.id || current.spawn !== agent.spawn) return false
    return parkItem(context, inside, item, { reason, by: BY })
  })
  await context.isolation.failpoint('patrol.parked')
  return isParked ? { ...about(agent, row), did: 'parked', reason } : undefined
}
