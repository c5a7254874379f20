import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { makeCgroup, removeCgroup } from '../process/cgroup.ts'
import { type RunMark, runMarkId } from '../process/run-mark.ts'
import type { RunWatch } from '../store/run-watches.ts'
import type { InboxMessage, Store } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { changesSince, changesSinceLastLook, type GitLooks, keepLooks, lookAtGit } from './git-looks.ts'
import { isAnythingLeft, type Leftovers, leftoversOf } from './leftovers.ts'
import { lateNotices, settleEndedRuns } from './ended-runs.ts'
import { betweenRunsNotice } from './notices.ts'
import type { Place } from './place.ts'
import { about, type Said, say } from './replies.ts'
import { armTripwire, tripped } from './tripwire.ts'

/** What is watched from before an agent starts until nothing of its run is left. */
export type WatchedRun = {
  readonly mark: RunMark
  readonly began: (child: ProcessIdentity) => void
  /** When the agent has ended: who is left, and what changed that nobody asked it to change. */
  readonly end: () => Promise<RunEnd>
  /** When there is no answer to put it into: the next look reports it. */
  readonly leave: () => Promise<Leftovers>
}

export type RunEnd = {
  readonly left: Leftovers
  readonly tripped: readonly string[]
  readonly planted: readonly string[]
  /** In the transaction that records the answer. */
  readonly record: (store: Store) => Promise<void>
}

/** Reports what changed since the last look, arms the wires anew and writes down how to find the run's processes. */
export const watchRun = async (
  context: ConversationsContext,
  message: InboxMessage,
  codebase: Codebase,
  place: Place,
): Promise<WatchedRun> => {
  const { isolation } = context
  const late = await settleEndedRuns(context, codebase)
  const before = await lookAtGit(context, codebase, place.environment)
  const between = await changesSinceLastLook(context, before)
  const checkout = await armTripwire(isolation, codebase)
  const watch = newWatch(context, message, codebase, place, checkout)
  await isolation.store.transaction(async (store) => {
    const said: Said[] = [
      ...lateNotices(codebase, late).map((text, n) => ({ key: `late:${message.attempts}:${n}`, text })),
      ...(between.length === 0
        ? []
        : [{ key: `between-runs:${message.attempts}`, text: betweenRunsNotice(codebase, between) }]),
    ].map((one) => ({ ...one, role: 'system' }))
    await say(context, store, about(message), said)
    // Looks before watches, as everywhere: two transactions that lock rows in two orders wait for each other for ever.
    await keepLooks(context, store, before)
    await late.record(store)
    await store.runWatches.insert(watch)
  })
  if (late.reports.length + between.length > 0) context.queue.spoke()
  await isolation.failpoint('message.watched')
  const { mark } = watch.data
  // Written down first: after a crash the row leads to it.
  const made = mark.cgroup !== undefined && makeCgroup(mark.cgroup)
  return armed(context, { watch, before, codebase, place, mark: made ? mark : { ...mark, cgroup: undefined } })
}

const newWatch = (
  { isolation, cgroup }: ConversationsContext,
  { id, attempts, platform, conversationId }: InboxMessage,
  codebase: Codebase,
  { directory, environment }: Place,
  checkout: RunWatch['data']['checkout'],
): RunWatch => {
  const markId = runMarkId(isolation.home, id, attempts)
  return {
    id: isolation.ids(),
    host: isolation.host,
    codebaseId: codebase.id,
    platform,
    conversationId,
    owner: isolation.self,
    ended: false,
    data: {
      messageId: id,
      environmentId: environment?.id,
      directory,
      mark: {
        id: markId,
        cgroup: cgroup === undefined ? undefined : join(cgroup, `coppice-${markId.replaceAll(/[^\w.-]/g, '-')}`),
      },
      checkout,
      unknown: [],
      named: false,
      reported: false,
    },
  }
}

type Armed = {
  readonly watch: RunWatch
  readonly before: GitLooks
  readonly codebase: Codebase
  readonly place: Place
  readonly mark: RunMark
}

const armed = (context: ConversationsContext, { watch, before, codebase, place, mark }: Armed): WatchedRun => {
  const { isolation } = context
  let child: ProcessIdentity | undefined
  const left = (): Promise<Leftovers> =>
    leftoversOf(isolation, {
      mark,
      child,
      directory: place.environment === undefined ? undefined : place.directory,
    })
  const ended = (found: Leftovers, data: Partial<RunWatch['data']> = {}): Pick<RunWatch, 'ended' | 'data'> => ({
    ended: true,
    data: { ...watch.data, mark, unknown: found.unknown, ...data },
  })
  return {
    mark,
    began: (identity) => {
      child = identity
    },
    end: async () => {
      // First who is left, then what changed: what nobody is left to do is in this report or never happens.
      const found = await left()
      const checkout = await armTripwire(isolation, codebase)
      const after = await lookAtGit(context, codebase, place.environment)
      const empty = mark.cgroup === undefined || removeCgroup(mark.cgroup)
      return {
        left: found,
        tripped: await tripped(isolation, codebase, watch.data.checkout),
        planted: await changesSince(context, before, after),
        record: async (store) => {
          await keepLooks(context, store, after)
          if (empty && !isAnythingLeft(found)) await store.runWatches.remove(watch.id)
          else await store.runWatches.update(watch.id, ended(found, { checkout, named: true }))
        },
      }
    },
    leave: async () => {
      const found = await left()
      const empty = mark.cgroup === undefined || removeCgroup(mark.cgroup)
      const over = empty && !isAnythingLeft(found)
      // Now, if nothing is left: what people do in the checkout while no server runs is nobody's business.
      const quiet = over && (await tripped(isolation, codebase, watch.data.checkout)).length === 0
      const { runWatches } = isolation.store
      const record = quiet ? runWatches.remove(watch.id) : runWatches.update(watch.id, ended(found))
      // Without it the row names an owner that will be dead one day, and is found then.
      await record.catch((error: unknown) => {
        isolation.log.warn('the end of a run could not be recorded yet', { error: toAppError(error).message })
      })
      return found
    },
  }
}
