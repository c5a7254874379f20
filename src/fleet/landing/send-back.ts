import type { Codebase } from '../../domain/environment.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import type { Item, ItemHistoryEntry, ParkReason } from '../../domain/fleet/item.ts'
import type { Landing, LandingRefusal } from '../../domain/fleet/landing.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import type { FleetContext } from '../context.ts'
import { parkItem } from '../items/change.ts'
import { sling } from '../sling/sling.ts'

/**
 * A refused item goes back to an agent in its own worktree, which learns the reason from `coppice prime`. After
 * `landing.returns` times, or if there is nothing an agent could do, it waits for a person. If the fleet has no room
 * now, it is tried again.
 */
export const sendBack = async (context: FleetContext, codebase: Codebase, landing: Landing): Promise<void> => {
  const { store } = context.isolation
  const item = landing.itemId === undefined ? undefined : await store.items.get(landing.itemId)
  const { why } = landing
  // Otherwise somebody has taken care of it. Open: its agent couldn't be started before.
  const waits = item?.state === 'in_review' || (item?.state === 'open' && item.environmentId !== undefined)
  if (item === undefined || why === undefined || !waits) return finish(context, landing)
  const returned = timesReturned(await store.items.history(item.id))
  const { config } = await baseAndConfig(context.isolation, codebase)
  const reason = parkReason(why, returned)
  const isHopeless = landing.mergeCommit !== undefined || (why.kind !== 'conflict' && why.kind !== 'gate-failed')
  if (isHopeless || returned > config.landingReturns) return park(context, landing, item, reason)
  const agent = await startAgain(context, item)
  if (agent === 'later') return
  if (agent === 'impossible') return park(context, landing, item, reason)
  await store.transaction(async (inside) => {
    if (!(await inside.landings.finish(landing.id, 'return'))) return
    const now = (await inside.items.get(item.id)) ?? item
    if (why.kind !== 'conflict' && why.kind !== 'gate-failed') return
    await context.notify(inside, { kind: 'sent-back', item: now, agent: agent.name, landing: landing.id, why })
  })
}

const finish = async ({ isolation: { store } }: FleetContext, { id }: Landing): Promise<void> =>
  void (await store.landings.finish(id, 'return'))

/** Since a person last decided about it. */
const timesReturned = (history: readonly ItemHistoryEntry[]): number => {
  const since = history.findLastIndex(({ change }) => change.kind === 'parked')
  return history.slice(since + 1).filter(({ change }) => change.kind === 'sent-back').length
}

const parkReason = (why: LandingRefusal, attempts: number): ParkReason => {
  switch (why.kind) {
    case 'conflict':
      return { kind: 'conflict', attempts }
    case 'gate-failed':
      return { kind: 'gate-failed', command: why.command, attempts: Math.max(1, attempts) }
    case 'commit-gone':
      return { kind: 'formula-failed', step: 'land', message: 'its commit is no longer in the repository' }
    case 'merge-undone':
      return { kind: 'formula-failed', step: 'land', message: 'its merge commit is no longer on the base branch' }
    case 'failed':
      return { kind: 'formula-failed', step: 'land', message: why.message }
  }
}

const park = (context: FleetContext, { id }: Landing, item: Item, reason: ParkReason): Promise<void> =>
  context.isolation.store.transaction(async (inside) => {
    if (!(await inside.landings.finish(id, 'return'))) return
    const now = (await inside.items.get(item.id)) ?? item
    await parkItem(context, inside, now, { reason, by: 'fleet' })
  })

/** These pass by themselves, or when a person starts the fleet again. */
const passing: ReadonlySet<string> = new Set(['fleet-down', 'fleet-paused', 'pool-full', 'fleet-full', 'crew-busy'])

const startAgain = async (
  context: FleetContext,
  item: Item,
): Promise<{ readonly name: string } | 'later' | 'impossible'> => {
  const { store, host, log } = context.isolation
  const environment = item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
  if (environment?.status !== 'active' || environment.host !== host) return 'impossible'
  const { work } = environment
  const owner = work.type === 'agent' ? await store.fleetAgents.byName(host, work.id) : undefined
  const crew = owner?.kind === 'crew' ? owner.name : undefined
  const pool = (await store.fleetAgents.lastGone(host, work.id))?.pool
  try {
    const slung = await sling(context, { item: item.id, by: 'fleet', fromReview: true, crew, pool })
    if (slung.outcome === 'started') return slung.agent
    return slung.outcome === 'refused' && passing.has(slung.why.kind) ? 'later' : 'impossible'
  } catch (error) {
    if (isAppError(error, 'busy')) return 'later'
    log.warn("a refused item's agent couldn't be started", { item: item.id, error: toAppError(error).message })
    return 'impossible'
  }
}
