import type { EnvironmentId } from '../domain/names.ts'
import { killRun } from '../process/kill.ts'
import { liveness } from '../process/identity.ts'
import { type LeftProcess, markedProcesses } from '../process/marked-processes.ts'
import { type RunMark, scriptMark } from '../process/run-mark.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { RunsContext } from './context.ts'
import { endProcesses, watchesOf } from './end-run.ts'
import { type Leftovers, nothingLeft, stillThere } from './leftovers.ts'

export type Stopped = {
  readonly outcome: 'stopped' | 'nothing-running'
  /** Who is still there all the same. */
  readonly left: Leftovers
  /** What setup or teardown left running for the worktree. The next run may need it, so it ends when no run does. */
  readonly scripts: { readonly ended: number; readonly running: readonly LeftProcess[] }
}

const noScripts = { ended: 0, running: [] }

export const nothingRunning: Stopped = { outcome: 'nothing-running', left: nothingLeft, scripts: noScripts }

/** A run of the conversation was ended. What its worktree's scripts left is named and stays. */
export const stoppedRun = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
  left: Leftovers,
): Promise<Stopped> => {
  const environmentId = await worktreeOf(context, key)
  const running = environmentId === undefined ? [] : await markedProcesses(scriptMarks(context, environmentId))
  return { outcome: 'stopped', left, scripts: { ended: 0, running } }
}

/** Ends a run that another process of this home works on: that process sees its agent end, and answers the message. */
export const stopElsewhere = async (
  context: Pick<RunsContext, 'isolation'>,
  message: InboxMessage,
): Promise<Stopped> => {
  const { isolation } = context
  if (message.child === undefined || message.holder?.host !== isolation.host) return nothingRunning
  const watches = await watchesOf(isolation, message)
  const killed = await endProcesses(isolation, message, watches)
  const [watch] = watches
  const isDead = killed.outcome === 'dead' || watch === undefined
  return stoppedRun(context, message, isDead ? nothingLeft : await stillThere(watch.data.mark, []))
}

/** Ends what earlier runs of the conversation, and the scripts of its worktree, left running. */
export const stopLeftovers = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
): Promise<Stopped> => {
  const { platform, conversationId } = key
  const { store, host, clock } = context.isolation
  let stopped = nothingRunning
  for (const watch of await store.runWatches.ofHost(host)) {
    if (watch.platform !== platform || watch.conversationId !== conversationId) continue
    if (!watch.ended && liveness(watch.owner) !== 'dead') continue
    const { mark, unknown } = watch.data
    if ((await stillThere(mark, [])).own.length === 0) continue
    await killRun([mark], { graceMs: GRACE_MS, clock })
    const left = await stillThere(mark, unknown)
    stopped = {
      ...stopped,
      outcome: 'stopped',
      left: { own: [...stopped.left.own, ...left.own], unknown: [...stopped.left.unknown, ...left.unknown] },
    }
  }
  const scripts = await stopScripts(context, key)
  return { ...stopped, scripts }
}

const stopScripts = async (
  context: Pick<RunsContext, 'isolation'>,
  key: ConversationKey,
): Promise<Stopped['scripts']> => {
  const { clock } = context.isolation
  const environmentId = await worktreeOf(context, key)
  if (environmentId === undefined) return noScripts
  const marks = scriptMarks(context, environmentId)
  const before = await markedProcesses(marks)
  if (before.length === 0 || (await isInUse(context, environmentId))) return { ended: 0, running: before }
  await killRun(marks, { graceMs: GRACE_MS, clock })
  const running = await markedProcesses(marks)
  return { ended: Math.max(0, before.length - running.length), running }
}

/** Another conversation's agent may be at work with them, or the script itself still runs. */
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
