import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { removeCgroup } from '../process/cgroup.ts'
import { liveness } from '../process/identity.ts'
import type { RunWatch } from '../store/run-watches.ts'
import type { Store } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { changesSinceLastLook, keepLooks, lookAtGit } from './git-looks.ts'
import { isAnythingLeft, type Leftovers, stillThere } from './leftovers.ts'
import { betweenRunsNotice, lateChangesNotice, leftNotice } from './notices.ts'
import { say } from './replies.ts'
import { armTripwire, tripped } from './tripwire.ts'

/*
 * Runs whose agent has ended while something it started lives on, and runs that a crash interrupted. The tripwire stays
 * armed for them: what happens in the shared checkout meanwhile is reported, by the next look or by the next message.
 */

export type EndedRuns = {
  readonly reports: readonly EndedRunReport[]
  /** In the transaction that records what is said about them. */
  readonly record: (store: Store) => Promise<void>
}

type EndedRunReport = {
  readonly watch: RunWatch
  readonly left: Leftovers
  /** In the shared checkout. */
  readonly changed: readonly string[]
}

/** Looks at the ended runs of a codebase, for the message that is about to run there. */
export const settleEndedRuns = async (context: ConversationsContext, codebase: Codebase): Promise<EndedRuns> => {
  const watches = (await endedWatches(context)).filter(({ codebaseId }) => codebaseId === codebase.id)
  const settled: Awaited<ReturnType<typeof settle>>[] = []
  for (const watch of watches) settled.push(await settle(context, codebase, watch))
  return {
    reports: settled.filter(({ changed, left, watch }) => changed.length > 0 || isNews(watch, left)),
    record: async (store) => {
      for (const { record } of settled) await record(store)
    },
  }
}

export const lateNotices = (codebase: Codebase, { reports }: EndedRuns): readonly string[] =>
  reports.flatMap((report) => noticesOf(codebase, report))

const noticesOf = (codebase: Codebase, { watch, left, changed }: EndedRunReport): readonly string[] => [
  ...(changed.length === 0 ? [] : [lateChangesNotice(codebase, changed)]),
  ...(isNews(watch, left) ? [leftNotice(left)] : []),
]

/** What was left by a run that was answered has been named in its answer. */
const isNews = ({ data }: RunWatch, left: Leftovers): boolean => !data.named && isAnythingLeft(left)

/** Also of those who died over it: whoever recovers the message ends what is left, and this finds what it could not. */
const endedWatches = async ({ isolation: { store, host } }: ConversationsContext): Promise<RunWatch[]> =>
  (await store.runWatches.ofHost(host)).filter(({ ended, owner }) => ended || liveness(owner) === 'dead')

const settle = async (
  { isolation }: ConversationsContext,
  codebase: Codebase,
  watch: RunWatch,
): Promise<EndedRunReport & { readonly record: (store: Store, reported?: boolean) => Promise<void> }> => {
  const { data } = watch
  // First who is left, then what changed: whatever nobody is left to do is in this report.
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

/** From one look to the next; a server that an agent left running may stay for weeks, and each look starts git. */
const FIRST_PAUSE_MS = 15_000
const LONGEST_PAUSE_MS = 600_000

/**
 * The look without a message. Each run is reported once while something of it lives, since by then people may be at work
 * in the checkout themselves; and once more when nothing of it is left.
 */
export const createEndedRunLook = (context: ConversationsContext): (() => Promise<void>) => {
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
    for (const watch of await endedWatches(context)) {
      try {
        if (await isDue(watch)) await report(context, watch)
      } catch (error) {
        isolation.log.warn('an ended run could not be looked at', { error: toAppError(error).message })
      }
    }
  }
}

const report = async (context: ConversationsContext, watch: RunWatch): Promise<void> => {
  const { isolation } = context
  const { store, clock } = isolation
  const codebase = await store.codebases.get(watch.codebaseId)
  if (codebase === undefined) return dropIfOver(context, watch)
  const { environmentId } = watch.data
  const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  const settled = await settle(context, codebase, watch)
  const now = await lookAtGit(context, codebase, environment?.status === 'active' ? environment : undefined)
  const planted = await changesSinceLastLook(context, now)
  const texts = [
    ...noticesOf(codebase, settled),
    ...(planted.length === 0 ? [] : [betweenRunsNotice(codebase, planted)]),
  ]
  await store.transaction(async (inside) => {
    const to = { platform: watch.platform, conversationId: watch.conversationId, inboxId: watch.data.messageId }
    const said = texts.map((text, n) => ({ key: `late:${watch.id}:${clock()}:${n}`, role: 'system', text }) as const)
    await say(context, inside, to, said)
    await keepLooks(context, inside, now)
    await settled.record(inside, watch.data.reported || texts.length > 0)
  })
  if (texts.length > 0) context.queue.spoke()
}

/** The codebase was removed: there is nobody to tell anything, and only the cgroup to clear away. */
const dropIfOver = async ({ isolation: { store } }: ConversationsContext, { id, data }: RunWatch): Promise<void> => {
  if (isAnythingLeft(await stillThere(data.mark, []))) return
  if (data.mark.cgroup === undefined || removeCgroup(data.mark.cgroup)) await store.runWatches.remove(id)
}
