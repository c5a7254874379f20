import type { EnvironmentId } from '../domain/names.ts'
import { killRun } from '../process/kill.ts'
import { liveness } from '../process/identity.ts'
import { isAnyMarked, type LeftProcess, markedProcesses } from '../process/marked-processes.ts'
import { type RunMark, scriptMark } from '../process/run-mark.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { RunsContext } from './context.ts'
import { endProcesses, watchesOf } from './end-run.ts'
import { isAnythingLeft, type Leftovers, nothingLeft, survivorsOf } from './leftovers.ts'

export type Stopped = {
  readonly outcome: 'stopped' | 'nothing-running'
  /** Processes that didn't stop. */
  readonly left: Leftovers
  /** Left by the worktree's setup or teardown. The next run may need them: `/stop` ends them only if it ends no run. */
  readonly scripts: {
    readonly ended: number
    readonly running: readonly LeftProcess[]
    /** As in `Leftovers`. */
    readonly unnamed?: true
  }
}

const noScripts = { ended: 0, running: [] }

export const nothingRunning: Stopped = { outcome: 'nothing-running', left: nothingLeft, scripts: noScripts }

/** After a run was stopped. Reports what its worktree's scripts left, but doesn't end it. */
export const stoppedRun = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
  left: Leftovers,
): Promise<Stopped> => {
  const environmentId = await worktreeOf(context, key)
  const scripts = environmentId === undefined ? noScripts : await runningScripts(context, environmentId)
  return { outcome: 'stopped', left, scripts }
}

/** Stops a run of another process of this home, which sees its agent end and answers the message. */
export const stopElsewhere = async (
  context: Pick<RunsContext, 'isolation'>,
  message: InboxMessage,
): Promise<Stopped> => {
  const { isolation } = context
  if (message.child === undefined || message.holder?.host !== isolation.host) return nothingRunning
  const watches = await watchesOf(isolation, message)
  const killed = await endProcesses(isolation, message, watches)
  const marks = watches.map(({ data }) => data.mark)
  return stoppedRun(context, message, await survivorsOf(killed, marks))
}

/** Ends what earlier runs of the conversation, and its worktree's scripts, left running. */
export const stopLeftovers = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
): Promise<Stopped> => {
  const { platform, conversationId } = key
  const { store, host, clock } = context.isolation
  const watches = (await store.runWatches.ofHost(host)).filter(
    (watch) =>
      watch.platform === platform &&
      watch.conversationId === conversationId &&
      (watch.ended || liveness(watch.owner) === 'dead'),
  )
  const marks = watches.map(({ data }) => data.mark)
  const before = await markedProcesses(marks)
  // Kill in any case: the check can't name every process.
  const survivors = await survivorsOf(await killRun(marks, { graceMs: GRACE_MS, clock }), marks)
  const scripts = await stopScripts(context, key)
  if (!isAnyMarked(before) && !isAnythingLeft(survivors)) return { ...nothingRunning, scripts }
  const unknown = watches.flatMap(({ data }) => data.unknown).filter((one) => liveness(one) !== 'dead')
  return { outcome: 'stopped', left: { ...survivors, unknown }, scripts }
}

const stopScripts = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
): Promise<Stopped['scripts']> => {
  const { clock } = context.isolation
  const environmentId = await worktreeOf(context, key)
  if (environmentId === undefined) return noScripts
  const before = await runningScripts(context, environmentId)
  if (await isInUse(context, environmentId)) return before
  const marks = scriptMarks(context, environmentId)
  const { own, unnamed } = await survivorsOf(await killRun(marks, { graceMs: GRACE_MS, clock }), marks)
  const there = before.running.length + (before.unnamed === true ? 1 : 0)
  const ended = Math.max(0, there - own.length - (unnamed === true ? 1 : 0))
  return { ended, running: own, ...(unnamed === true ? { unnamed } : {}) }
}

const runningScripts = async (
  context: Pick<RunsContext, 'isolation'>,
  environmentId: EnvironmentId,
): Promise<Stopped['scripts']> => {
  const { named, unnamed } = await markedProcesses(scriptMarks(context, environmentId))
  return { ended: 0, running: named, ...(unnamed ? { unnamed } : {}) }
}

/** Another conversation's agent may be using them, or the script itself is still running. */
const isInUse = async (
  { isolation: { store, host } }: Pick<RunsContext, 'isolation'>,
  environmentId: EnvironmentId,
): Promise<boolean> => {
  const runs = (await store.runWatches.ofHost(host)).filter(({ ended }) => !ended)
  const leases = await store.leases.ofEnvironments([environmentId])
  const open = await store.journal.open(host)
  return (
    runs.some(({ data, owner }) => data.environmentId === environmentId && liveness(owner) !== 'dead') ||
    leases.some(({ holder }) => liveness(holder) !== 'dead') ||
    open.some((entry) => entry.environmentId === environmentId)
  )
}

const worktreeOf = async (
  { isolation: { store } }: Pick<RunsContext, 'isolation'>,
  { platform, conversationId }: ConversationKey,
): Promise<EnvironmentId | undefined> => (await store.conversations.find(platform, conversationId))?.environmentId

const scriptMarks = (
  { isolation: { home } }: Pick<RunsContext, 'isolation'>,
  environmentId: EnvironmentId,
): readonly RunMark[] => (['setup', 'teardown'] as const).map((kind) => scriptMark(home, environmentId, kind))

const GRACE_MS = 5_000
