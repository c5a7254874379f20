import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { makeCgroup, removeCgroup } from '../process/cgroup.ts'
import { type RunMark, runMarkId } from '../process/run-mark.ts'
import type { RunWatch } from '../store/run-watches.ts'
import type { RunsContext } from './context.ts'
import { checkEndedRuns } from './ended-runs.ts'
import { isAnythingLeft, type Leftovers, leftoversOf } from './leftovers.ts'
import type { Workspace } from './workspace.ts'
import type { RunEnd, RunRequest } from './request.ts'
import { asKept, changesSince, changesSinceLastLook, type GitLooks, keepLooks, lookAtGit } from './wires/git-looks.ts'
import { armTripwire, tripped } from './wires/tripwire.ts'

/** Watches a run from before the agent starts until nothing of it is left. */
export type WatchedRun = {
  readonly mark: RunMark
  readonly began: (child: ProcessIdentity) => void
  /** After the agent: remaining processes, and unrequested changes. */
  readonly end: () => Promise<RunEnd>
  /** Without a reply to report in: the next check reports it. */
  readonly leave: () => Promise<Leftovers>
}

/** Reports changes since the last check, re-arms the tripwires and records how to find the run's processes. */
export const watchRun = async (context: RunsContext, request: RunRequest, place: Workspace): Promise<WatchedRun> => {
  const { isolation } = context
  const { codebase, reporter } = request
  const earlier = await checkEndedRuns(context, codebase)
  const before = await lookAtGit(context, codebase, place.environment)
  const { lines: planted, kept } = await changesSinceLastLook(context, before)
  const checkout = await armTripwire(isolation, codebase)
  const watch = newWatch(context, request, place, checkout)
  const hasNews = earlier.found.length + planted.length > 0
  await isolation.store.transaction(async (store) => {
    if (hasNews) await reporter.found(store, { ended: earlier.found, planted })
    // Looks before watches, as everywhere: transactions that lock rows in different orders deadlock.
    await keepLooks(context, store, before, kept)
    await earlier.record(store)
    await store.runWatches.insert(watch)
  })
  if (hasNews) reporter.committed()
  await isolation.failpoint('run.watched')
  const { mark } = watch.data
  // Recorded first, so that it can be found after a crash.
  const made = mark.cgroup !== undefined && makeCgroup(mark.cgroup)
  return armed(context, { watch, before, codebase, place, mark: made ? mark : { ...mark, cgroup: undefined } })
}

const newWatch = (
  { isolation, cgroup }: RunsContext,
  { id, attempt, codebase, reportTo: { platform, conversationId, messageId } }: RunRequest,
  { directory, environment }: Workspace,
  checkout: RunWatch['data']['checkout'],
): RunWatch => {
  const markId = runMarkId(isolation.home, id, attempt)
  return {
    id: isolation.ids(),
    host: isolation.host,
    codebaseId: codebase.id,
    platform,
    conversationId,
    owner: isolation.self,
    ended: false,
    data: {
      messageId,
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
  readonly place: Workspace
  readonly mark: RunMark
}

const armed = (context: RunsContext, { watch, before, codebase, place, mark }: Armed): WatchedRun => {
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
      // Check processes first: once none is left, nothing can change after this report.
      const found = await left()
      const checkout = await armTripwire(isolation, codebase)
      const after = await lookAtGit(context, codebase, place.environment)
      const empty = mark.cgroup === undefined || removeCgroup(mark.cgroup)
      return {
        left: found,
        tripped: await tripped(isolation, codebase, watch.data.checkout),
        planted: await changesSince(context, before, after),
        record: async (store) => {
          await keepLooks(context, store, after, asKept(before))
          if (empty && !isAnythingLeft(found)) await store.runWatches.remove(watch.id)
          else await store.runWatches.update(watch.id, ended(found, { checkout, named: true }))
        },
      }
    },
    leave: async () => {
      const found = await left()
      const empty = mark.cgroup === undefined || removeCgroup(mark.cgroup)
      const over = empty && !isAnythingLeft(found)
      // If no process is left, stop watching now; changes made later are the user's own.
      const quiet = over && (await tripped(isolation, codebase, watch.data.checkout)).length === 0
      const { runWatches } = isolation.store
      const record = quiet ? runWatches.remove(watch.id) : runWatches.update(watch.id, ended(found))
      // If this fails, the row is found once its owner is dead.
      await record.catch((error: unknown) => {
        isolation.log.warn('the end of a run could not be recorded yet', { error: toAppError(error).message })
      })
      return found
    },
  }
}
