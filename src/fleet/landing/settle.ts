/*
 * What follows from a landing. In: commits that are on the base branch, or a branch that can't land. Out: the states of
 * landings and items, and afterwards what takes longer: worktrees, issues, agents.
 */
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { canItemBecome, type Item } from '../../domain/fleet/item.ts'
import type { Landing, LandingGate, LandingPush, LandingRefusal } from '../../domain/fleet/landing.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'
import { closeSourceIssue } from '../items/close-issue.ts'
import { noteInWorktree } from '../items/note-in-worktree.ts'

const BY = 'fleet'

/** The push is confirmed. Call in the transaction that clears it. */
export const recordLanded = async (context: FleetContext, store: Store, push: LandingPush): Promise<void> => {
  const { clock } = context.isolation
  for (const { id, landedSha } of push.members) {
    const patch = { landedSha, todo: 'settle', ...(push.gate !== undefined && { gate: push.gate }) } as const
    // Queued again or closed meanwhile: then it isn't ours to settle.
    if (!(await store.landings.move(id, 'testing', 'landed', clock(), patch))) continue
    const landing = await store.landings.get(id)
    const item = landing?.itemId === undefined ? undefined : await store.items.get(landing.itemId)
    if (item !== undefined) await landItem(context, store, item)
  }
}

const landItem = async (context: FleetContext, store: Store, item: Item): Promise<void> => {
  // An agent works on it again, so it isn't finished.
  if (!canItemBecome(item.state, 'landed')) return
  const change = { kind: 'state', from: item.state, to: 'landed' } as const
  const moved = await store.items.move(item.id, {
    from: item.state,
    to: 'landed',
    change,
    by: BY,
    at: context.isolation.clock(),
  })
  if (moved) await context.notify(store, { kind: 'landed', item: { ...item, state: 'landed', parked: undefined } })
}

/** Returns false if it was withdrawn meanwhile. */
export const refuse = (
  context: FleetContext,
  { id, itemId, state, mergeCommit, attempts }: Landing,
  { why, gate }: { readonly why: LandingRefusal; readonly gate?: LandingGate | undefined },
): Promise<boolean> => {
  const { store, clock } = context.isolation
  return store.transaction(async (inside) => {
    const at = clock()
    const patch = {
      why,
      todo: 'return',
      // What was tested is counted already.
      attempts: state === 'queued' ? attempts + 1 : attempts,
      ...(gate !== undefined && { gate }),
    } as const
    if (!(await inside.landings.move(id, state, 'refused', at, patch))) return false
    const item = itemId === undefined ? undefined : await inside.items.get(itemId)
    const isProblem = why.kind === 'conflict' || why.kind === 'gate-failed'
    if (item !== undefined && mergeCommit === undefined && isProblem) {
      await inside.items.note(item.id, { kind: 'sent-back', landing: id, why }, { by: BY, at })
    }
    return true
  })
}

/** After it has landed: removes its worktree through the gates, and closes its issue. Repeating it changes nothing. */
export const settle = async (context: FleetContext, codebase: Codebase, landing: Landing): Promise<void> => {
  const { store, log } = context.isolation
  const item = landing.itemId === undefined ? undefined : await store.items.get(landing.itemId)
  const environment = await environmentOf(context, landing, item)
  if (environment?.status === 'active') {
    await noteInWorktree(context, codebase, environment, item?.id)
    try {
      const trigger = item === undefined ? 'merged' : 'fleet'
      const outcome = await (await context.environments()).destroy(environment, { trigger })
      if (outcome.outcome === 'refused')
        log.info('the worktree of a landed branch was kept', { branch: landing.branch })
    } catch (error) {
      // Not an error: the work has landed, and cleanup retries the removal.
      log.warn('the worktree of a landed branch could not be removed', { error: toAppError(error).message })
    }
  }
  await context.isolation.failpoint('landing.worktree')
  if (item !== undefined && !(await closeIssue(context, codebase, item, landing))) return
  await store.landings.finish(landing.id, 'settle')
}

const environmentOf = async (
  { isolation: { store } }: FleetContext,
  { codebaseId, branch }: Landing,
  item: Item | undefined,
): Promise<IsolatedEnvironment | undefined> => {
  if (item === undefined) return store.environments.liveByBranch(codebaseId, branch)
  return item.environmentId === undefined ? undefined : store.environments.get(item.environmentId)
}

/** False: the code host didn't answer, so it is tried again. */
const closeIssue = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  item: Item,
  { landedSha }: Landing,
): Promise<boolean> => {
  if (item.source?.kind !== 'github') return true
  const closed = await closeSourceIssue(isolation, codebase, item, `Landed as ${landedSha ?? 'a commit'}.`)
  if (closed.outcome === 'unreachable' || closed.outcome === 'limited') return false
  if (closed.outcome === 'refused')
    isolation.log.warn('an issue could not be closed', { item: item.id, said: closed.said })
  return true
}
