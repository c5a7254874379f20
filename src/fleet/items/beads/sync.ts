/*
 * Syncs the states of items and beads issues. In: a codebase with `.beads`. Out: what was imported, what changed on
 * each side, and what was left alone and why. Safe to repeat after a crash at any point: a change is complete only once
 * both sides are known to agree.
 */
import type { Codebase } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import type { BeadsPlan } from '../../../domain/fleet/import/beads-plan.ts'
import { inOrder } from '../../../domain/fleet/import/order.ts'
import { snapshotOf } from '../../../domain/fleet/import/wanted.ts'
import { phaseOf, type SyncStep, syncStep, type There } from '../../../domain/fleet/import/sync-states.ts'
import type { Item, ItemState, ParkReason, Phase, SourceSnapshot } from '../../../domain/fleet/item.ts'
import { remedy, shell } from '../../../domain/remedy.ts'
import type { Store } from '../../../store/store.ts'
import type { FleetContext } from '../../context.ts'
import { parkItem } from '../change.ts'
import { type Bd, type BdStatus, openBd } from './bd.ts'
import { type BeadsImport, importBeads } from './import-beads.ts'
import type { LinesFrom } from './issue-lines.ts'

/** `item`: its state before the sync. */
export type BeadsSync = {
  readonly imported: BeadsImport
  /** Changed here, because beads had changed. */
  readonly pulled: readonly { readonly item: Item; readonly to: ItemState }[]
  /** Changed in beads, because the item had changed. */
  readonly pushed: readonly { readonly item: Item; readonly to: BdStatus | 'closed' }[]
  readonly left: readonly Left[]
  /** Changes that bd refused; the next sync tries again. */
  readonly refused: readonly { readonly item: Item; readonly said: string }[]
}

type Left = { readonly item: Item; readonly there: There; readonly why: LeaveReason }
export type LeaveReason = Extract<SyncStep, { kind: 'leave' }>['why']

export type SyncRequest = {
  readonly codebase: Codebase
  readonly by: string
  readonly dryRun: boolean
  readonly signal?: AbortSignal | undefined
  /** Texts that are written into beads. */
  readonly words: { readonly closed: string; readonly parked: (item: Item) => string }
}

export const syncBeads = async (context: FleetContext, request: SyncRequest): Promise<BeadsSync> => {
  const { isolation } = context
  const { codebase, by, dryRun, signal } = request
  const bd = await openBd(isolation, codebase, signal)
  isolation.progress('reading issues from beads')
  const { imported, plan } = await importBeads(isolation, await bd.export(), fromBd, { codebase, by, dryRun })
  const pairs = await pairsOf(isolation.store, codebase, plan)
  const left = pairs.flatMap(({ item, there, step }): Left[] =>
    step.kind === 'leave' ? [{ item, there, why: step.why }] : [],
  )
  const pulled: BeadsSync['pulled'][number][] = []
  for (const pair of pairs) {
    const { item, there, step } = pair
    if (step.kind === 'agree' && !dryRun) await remember(isolation.store, pair, phaseOf(item.state))
    if (step.kind !== 'pull') continue
    if (dryRun || (await pull(context, pair, step.to))) pulled.push({ item, to: stateOf[step.to] })
    else left.push({ item, there, why: 'at-work' })
  }
  const pushes = pairs.flatMap((pair) => (pair.step.kind === 'push' ? [{ ...pair, to: pair.step.to }] : []))
  if (pushes.length > 0) isolation.progress('updating beads')
  const { pushed, refused } = dryRun
    ? { pushed: pushes, refused: [] }
    : await pushAll(context, bd, pushes, request.words)
  return { imported, pulled, pushed: pushed.map(({ item, to }) => ({ item, to: statusOf[to] })), left, refused }
}

const fromBd: LinesFrom = {
  name: 'bd export',
  code: 'program-failed',
  remedy: remedy`nothing was changed. Look at what ${shell('bd export')} writes; ${shell('bd doctor')} checks its store`,
}

const stateOf = { ready: 'open', waiting: 'parked', done: 'closed' } as const

const statusOf = { ready: 'open', working: 'in_progress', waiting: 'blocked', done: 'closed' } as const

/** An item, its issue, and the step that brings them into agreement. */
type Pair = {
  readonly item: Item
  readonly id: string
  readonly there: There
  /** Why work on the issue can't start. */
  readonly parked: ParkReason | undefined
  readonly step: SyncStep
}

const pairsOf = async (store: Store, codebase: Codebase, plan: BeadsPlan): Promise<readonly Pair[]> => {
  const wanted = new Map(
    plan.wanted.flatMap(({ source, parked }) => (source.kind === 'beads' ? [[source.id, parked] as const] : [])),
  )
  return (await store.items.fromSource(codebase.id, 'beads')).flatMap((item): Pair[] => {
    if (item.source?.kind !== 'beads') return []
    const { id, seen } = item.source
    const there = plan.there.get(id) ?? 'gone'
    return [{ item, id, there, parked: wanted.get(id), step: syncStep(there, phaseOf(item.state), seen?.phases) }]
  })
}

/** False if an agent has the item, or the item has changed meanwhile; the next sync tries again. */
const pull = async (context: FleetContext, pair: Pair, to: keyof typeof stateOf): Promise<boolean> => {
  const { store, clock } = context.isolation
  const { item, parked } = pair
  const by = 'beads'
  return store.transaction(async (inside) => {
    // A parked item may still have its agent.
    if ((await inside.fleetAgents.ofItems([item.id])).length > 0) return false
    const moved =
      to === 'waiting' && parked !== undefined
        ? await parkItem(context, inside, item, { reason: parked, by })
        : await moveTo(context, inside, item, { to: stateOf[to], by, at: clock() })
    if (moved) await remember(inside, pair, to)
    return moved
  })
}

const moveTo = async (
  { notify }: FleetContext,
  store: Store,
  item: Item,
  { to, by, at }: { readonly to: ItemState; readonly by: string; readonly at: number },
): Promise<boolean> => {
  const change = { kind: 'state', from: item.state, to } as const
  const moved = await store.items.move(item.id, { from: item.state, to, change, by, at })
  if (moved) await notify(store, { kind: to === 'closed' ? 'closed' : 'reopened', item: { ...item, state: to } })
  return moved
}

type Push = Pair & { readonly to: Phase }

const pushAll = async (
  { isolation }: FleetContext,
  bd: Bd,
  pushes: readonly Push[],
  words: SyncRequest['words'],
): Promise<{ readonly pushed: readonly Push[]; readonly refused: BeadsSync['refused'] }> => {
  const pushed: Push[] = []
  const refused: BeadsSync['refused'][number][] = []
  for (const phase of ['working', 'ready', 'waiting', 'done'] as const) {
    const some = dependenciesFirst(pushes.filter(({ to }) => to === phase))
    if (some.length === 0) continue
    const ids = some.map(({ id }) => id)
    const answer = await (phase === 'done' ? bd.close(ids, words.closed) : bd.setStatus(ids, statusOf[phase]))
    await isolation.failpoint('sync-beads.changed')
    for (const push of some) {
      const { item, id } = push
      if (!answer.done.has(id)) {
        refused.push({ item, said: answer.refused.get(id) ?? '' })
        continue
      }
      await remember(isolation.store, { ...push, there: phase }, phase)
      pushed.push(push)
      if (phase === 'waiting') refused.push(...(await commentOn(bd, push, words)))
    }
  }
  return { pushed, refused }
}

/** Not retried, since the status is what matters. */
const commentOn = async (
  bd: Bd,
  { item, id }: Push,
  { parked }: SyncRequest['words'],
): Promise<BeadsSync['refused']> => {
  try {
    await bd.comment(id, parked(item))
    return []
  } catch (error) {
    return [{ item, said: toAppError(error).message }]
  }
}

/** Dependencies first: bd refuses to close an issue before them. */
const dependenciesFirst = (pushes: readonly Push[]): readonly Push[] => {
  const byItem = new Map(pushes.map((push) => [push.item.id, push]))
  const ordered = inOrder(
    new Map(pushes.map(({ item }) => [item.id, item.after.filter((id) => byItem.has(id))] as const)),
  )
  return 'circle' in ordered ? pushes : ordered.order.flatMap((id) => byItem.get(id) ?? [])
}

/** Records that both sides agree; whatever differs at the next sync has changed since. */
const remember = (store: Store, { item: { id }, there }: Pick<Pair, 'item' | 'there'>, here: Phase): Promise<void> =>
  store.transaction(async (inside) => {
    const item = await inside.items.get(id)
    if (item?.source === undefined || there === 'gone') return
    const { source, title, body, priority, after } = item
    const seen: SourceSnapshot = {
      ...(source.seen ?? snapshotOf({ title, body, priority, after })),
      phases: { there, here },
    }
    await inside.items.update(id, { source: { ...source, seen } })
  })
