/*
 * Works a codebase's landing queue off. In: queued landings. Out: each is on the base branch, or refused with a reason
 * and back with its agent. `batch.ts` lands a batch, `verify.ts` tests merged pull requests, `settle.ts` and
 * `send-back.ts` do what follows; `hold.ts` keeps other processes out.
 */
import type { Codebase } from '../../domain/environment.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import type { LandingBlock, LandingQueue } from '../../domain/fleet/landing.ts'
import { clearScratchTrees } from '../../isolation/codebases/landing/scratch-tree.ts'
import { hasLanded, landingTarget } from '../../isolation/codebases/landing/target.ts'
import type { FleetContext } from '../context.ts'
import { confirmPush, landBatch, requeue } from './batch.ts'
import { withQueue } from './hold.ts'
import { pickReady } from './pick.ts'
import { sendBack } from './send-back.ts'
import { settle } from './settle.ts'
import { verifyMerged } from './verify.ts'

export type QueueOutcome =
  /** Nothing can be done now. `left`: some wait for an agent that is finishing, or for room in the fleet. */
  | { readonly outcome: 'done'; readonly left: boolean }
  | { readonly outcome: 'blocked'; readonly why: LandingBlock }
  | { readonly outcome: 'busy'; readonly holder: LandingQueue['holder'] }
  | { readonly outcome: 'fleet-down' }

/** A base that moves more often than this while a batch is tested is left alone until the next round. */
const MOST_MOVES = 5

export const workQueue = (context: FleetContext, codebase: Codebase, signal?: AbortSignal): Promise<QueueOutcome> =>
  withQueue(context, codebase, async (): Promise<QueueOutcome> => {
    const { store, clock } = context.isolation
    const outcome = await work(context, codebase, signal).catch(async (error: unknown): Promise<QueueOutcome> => {
      await requeueTesting(context, codebase)
      if (signal?.aborted === true) throw error
      return { outcome: 'blocked', why: blockOf(error) }
    })
    const blocked = outcome.outcome === 'blocked' ? { ...outcome.why, at: clock() } : undefined
    await store.transaction(async (inside) => {
      const before = (await inside.landings.queue(codebase.id)).blocked
      await inside.landings.updateQueue(codebase.id, { blocked })
      if (outcome.outcome !== 'blocked' || before?.kind === outcome.why.kind) return
      await context.notify(inside, { kind: 'landing-blocked', codebase: codebase.name, why: outcome.why })
    })
    return outcome
  })

const blockOf = (error: unknown): LandingBlock => {
  const { message } = toAppError(error)
  return isAppError(error, 'remote-unreachable') ? { kind: 'offline', detail: message } : { kind: 'failed', message }
}

const work = async (context: FleetContext, known: Codebase, signal: AbortSignal | undefined): Promise<QueueOutcome> => {
  const { store, host } = context.isolation
  await clearScratchTrees(context.isolation)
  const unresolved = await resolvePush(context, known)
  if (unresolved !== undefined) return { outcome: 'blocked', why: unresolved }
  await requeueTesting(context, known)
  for (let moves = 0; ;) {
    signal?.throwIfAborted()
    if ((await store.fleetControl.get(host)).state === 'down') return { outcome: 'fleet-down' }
    // Read again: a person may have confirmed its remote or approved its gates.
    const codebase = (await store.codebases.get(known.id)) ?? known
    const left = await followUp(context, codebase)
    const { ready, finishing } = await pickReady(context, codebase)
    const [head] = ready
    if (head === undefined) return { outcome: 'done', left: left || finishing > 0 }
    const outcome =
      head.mergeCommit === undefined
        ? await landBatch(context, codebase, ready, signal)
        : await verifyMerged(context, codebase, head, signal)
    if (outcome.outcome === 'blocked') return outcome
    moves = outcome.outcome === 'moved' ? moves + 1 : 0
    if (outcome.outcome === 'moved' && moves === MOST_MOVES) {
      return { outcome: 'blocked', why: { kind: 'base-moves', base: outcome.base, attempts: moves } }
    }
  }
}

/**
 * An earlier process died between the push and its confirmation: the remote knows how that ended. Without the address
 * that was pushed to, nobody does, and it stays recorded until a person has confirmed the address.
 */
const resolvePush = async (context: FleetContext, codebase: Codebase): Promise<LandingBlock | undefined> => {
  const { isolation } = context
  const { push } = await isolation.store.landings.queue(codebase.id)
  if (push === undefined) return undefined
  const target =
    codebase.remote === undefined
      ? { branch: push.base, remote: undefined }
      : await landingTarget(isolation, codebase, push.base)
  if ('blocked' in target) return target.blocked
  const isThere = push.from === push.to || (await hasLanded(isolation, codebase, target, push.to))
  if (isThere) await confirmPush(context, codebase, push)
  else await isolation.store.landings.updateQueue(codebase.id, { push: undefined })
  return undefined
}

const requeueTesting = async (context: FleetContext, codebase: Codebase): Promise<void> => {
  const { store, clock } = context.isolation
  const pending = await store.landings.pending(codebase.id)
  const testing = pending.filter(({ state }) => state === 'testing')
  await requeue(
    store,
    testing.map((landing) => ({ landing })),
    clock(),
  )
}

/** Finishes what follows from earlier landings. True if something is still left. */
const followUp = async (context: FleetContext, codebase: Codebase): Promise<boolean> => {
  const { store } = context.isolation
  for (const landing of await store.landings.pending(codebase.id)) {
    if (landing.todo === 'settle') await settle(context, codebase, landing)
    if (landing.todo === 'return') await sendBack(context, codebase, landing)
  }
  return (await store.landings.pending(codebase.id)).some(({ todo }) => todo !== undefined)
}
