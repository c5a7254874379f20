import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { removeCgroup } from '../process/cgroup.ts'
import { liveness } from '../process/identity.ts'
import type { RunWatch } from '../store/run-watches.ts'
import type { Store } from '../store/store.ts'
import type { RunsContext } from './context.ts'
import { isAnythingLeft, type Leftovers, stillThere } from './leftovers.ts'
import { changesSinceLastLook, keepLooks, lookAtGit } from './wires/git-looks.ts'
import { armTripwire, tripped } from './wires/tripwire.ts'
import type { CheckoutChange } from '../domain/checkout-change.ts'

/*
 * Runs whose agent has ended while something it started is still alive, and runs that a crash interrupted. Their
 * tripwire stays armed: the next check or run reports changes in the shared checkout.
 */

export type EndedRuns = {
  /** Only those with news. */
  readonly found: readonly EndedRunReport[]
  /** Call in the transaction that records the report. */
  readonly record: (store: Store) => Promise<void>
}

export type EndedRunReport = {
  /** Remaining processes; undefined if already reported. */
  readonly left: Leftovers | undefined
  /** In the shared checkout. */
  readonly changed: readonly CheckoutChange[]
}

/** Checks a codebase's ended runs before a new one starts. */
export const checkEndedRuns = async (context: RunsContext, codebase: Codebase): Promise<EndedRuns> => {
  const watches = (await endedWatches(context)).filter(({ codebaseId }) => codebaseId === codebase.id)
  const settled: Settled[] = []
  for (const watch of watches) settled.push(await settle(context, codebase, watch))
  return {
    found: settled.map(newsOf).filter(isNews),
    record: async (store) => {
      for (const { record } of settled) await record(store)
    },
  }
}

/** An answered run has already reported its remaining processes. */
const newsOf = ({ watch, left, changed }: Settled): EndedRunReport => ({
  left: !watch.data.named && isAnythingLeft(left) ? left : undefined,
  changed,
})

const isNews = ({ left, changed }: EndedRunReport): boolean => left !== undefined || changed.length > 0

/** Includes runs whose owner died: recovery ends what is left, and this finds what it couldn't end. */
const endedWatches = async ({ isolation: { store, host, self } }: RunsContext): Promise<RunWatch[]> =>
  (await store.runWatches.endedOrOthers(host, self)).filter(({ ended, owner }) => ended || liveness(owner) === 'dead')

type Settled = {
  readonly watch: RunWatch
  readonly left: Leftovers
  readonly changed: readonly CheckoutChange[]
  readonly record: (store: Store, reported?: boolean) => Promise<void>
}

const settle = async ({ isolation }: RunsContext, codebase: Codebase, watch: RunWatch): Promise<Settled> => {
  const { data } = watch
  // Check processes first: once none is left, nothing can change after this report.
  const left = await stillThere(data.mark, data.unknown)
  const checkout = await armTripwire(isolation, codebase)
  const changed = await tripped(isolation, codebase, data.checkout)
  const over = !isAnythingLeft(left) && (data.mark.cgroup === undefined || removeCgroup(data.mark.cgroup))
  return {
    watch,
    left,
    changed,
    record: async (store, reported = false) => {
      if (over) await store.runWatches.remove(watch.id)
      else await store.runWatches.update(watch.id, { ended: true, data: { ...data, checkout, named: true, reported } })
    },
  }
}

/** Between checks: a process left by an agent may run for weeks, and each check starts git. */
const FIRST_PAUSE_MS = 15_000
const LONGEST_PAUSE_MS = 600_000

/** Notifies whoever started the run, in the transaction that records it. */
export type TellLater = (
  store: Store,
  run: Pick<RunWatch, 'id' | 'platform' | 'conversationId' | 'data'>,
  found: { readonly codebase: Codebase; readonly ended: EndedRunReport; readonly planted: readonly string[] },
) => Promise<void>

/**
 * Checks without a new run. Reports each run once while part of it is alive (later changes in the checkout may be the
 * user's own), and once more when nothing is left.
 */
export const createEndedRunLook = (context: RunsContext, tell: TellLater): (() => Promise<boolean>) => {
  const { isolation } = context
  const pauses = new Map<string, { readonly next: number; readonly pause: number }>()
  const isDue = async (watch: RunWatch): Promise<boolean> => {
    if (!isAnythingLeft(await stillThere(watch.data.mark, watch.data.unknown))) return true
    if (watch.data.reported) return false
    const { next, pause } = pauses.get(watch.id) ?? { next: 0, pause: FIRST_PAUSE_MS }
    if (isolation.clock() < next) return false
    pauses.set(watch.id, { next: isolation.clock() + pause, pause: Math.min(pause * 2, LONGEST_PAUSE_MS) })
    return true
  }
  return async () => {
    let told = false
    for (const watch of await endedWatches(context)) {
      try {
        if (await isDue(watch)) told = (await report(context, watch, tell)) || told
      } catch (error) {
        isolation.log.warn('an ended run could not be looked at', { error: toAppError(error).message })
      }
    }
    return told
  }
}

const report = async (context: RunsContext, watch: RunWatch, tell: TellLater): Promise<boolean> => {
  const { store } = context.isolation
  const codebase = await store.codebases.get(watch.codebaseId)
  if (codebase === undefined) {
    await dropIfOver(context, watch)
    return false
  }
  const { environmentId } = watch.data
  const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  const settled = await settle(context, codebase, watch)
  const now = await lookAtGit(context, codebase, environment?.status === 'active' ? environment : undefined)
  const { lines: planted, kept } = await changesSinceLastLook(context, now)
  const ended = newsOf(settled)
  const hasNews = isNews(ended) || planted.length > 0
  await store.transaction(async (inside) => {
    if (hasNews) await tell(inside, watch, { codebase, ended, planted })
    await keepLooks(context, inside, now, kept)
    await settled.record(inside, watch.data.reported || hasNews)
  })
  return hasNews
}

/** The codebase was removed: nobody to notify, only the cgroup to remove. */
const dropIfOver = async ({ isolation: { store } }: RunsContext, { id, data }: RunWatch): Promise<void> => {
  if (isAnythingLeft(await stillThere(data.mark, []))) return
  if (data.mark.cgroup === undefined || removeCgroup(data.mark.cgroup)) await store.runWatches.remove(id)
}
