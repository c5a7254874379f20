import { toAppError } from '../domain/errors.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { killRun, type KillOutcome, killTree } from '../process/kill.ts'
import { type RunMark, runMarkId } from '../process/run-mark.ts'
import type { RunWatch } from '../store/run-watches.ts'
import type { InboxMessage } from '../store/store.ts'
import { leftoversOf } from './leftovers.ts'

const GRACE_MS = 2_000

type Context = Pick<IsolationContext, 'clock' | 'log' | 'store' | 'host' | 'home' | 'self'> & {
  readonly git: Pick<IsolationContext['git'], 'running'>
}
type Interrupted = Pick<InboxMessage, 'id' | 'child' | 'attempts'>

/**
 * Ends what an interrupted run left: an agent outlives a killed server, and must be dead before the message is retried.
 * False if part of it may be alive.
 */
export const createEndRun =
  (context: Context) =>
  async (message: Interrupted): Promise<boolean> => {
    try {
      const watches = await watchesOf(context, message)
      if ((await endProcesses(context, message, watches)).outcome === 'survivors') return false
      for (const watch of watches) await writeEnd(context, message, watch)
      return true
    } catch (error) {
      context.log.warn('an interrupted run could not be ended', { id: message.id, error: toAppError(error).message })
      return false
    }
  }

/** The run's recorded process, and all that bear the mark of this or an earlier attempt at the message. */
export const endProcesses = async (
  { clock, home }: Pick<Context, 'clock' | 'home'>,
  { id, child, attempts }: Interrupted,
  watches: readonly RunWatch[],
): Promise<KillOutcome> => {
  const options = { graceMs: GRACE_MS, clock }
  const tree: KillOutcome = child === undefined ? { outcome: 'dead' } : await killTree(child, options)
  if (tree.outcome === 'survivors') return tree
  const marks = markIds(home, id, attempts).map((mark): RunMark => ({ id: mark, cgroup: undefined }))
  return killRun([...marks, ...watches.map(({ data }) => data.mark)], options)
}

/**
 * Only up to this attempt: another recovering process may have requeued and restarted the message since we read it, and
 * that run is alive.
 */
const markIds = (home: string, message: string, attempts: number): readonly string[] =>
  Array.from({ length: attempts }, (_, n) => runMarkId(home, message, n + 1))

export const watchesOf = async (
  { store, host, home }: Pick<Context, 'store' | 'host' | 'home'>,
  { id, attempts }: Pick<InboxMessage, 'id' | 'attempts'>,
): Promise<RunWatch[]> => {
  const marks = new Set(markIds(home, id, attempts))
  return (await store.runWatches.ofHost(host)).filter(({ data }) => marks.has(data.mark.id))
}

/** Processes in the worktree without the mark aren't ours to end: the next run reports them. */
const writeEnd = async (context: Context, { child }: Interrupted, { id, data, ended }: RunWatch): Promise<void> => {
  if (ended) return
  const directory = data.environmentId === undefined ? undefined : data.directory
  const { unknown } = await leftoversOf(context, { mark: data.mark, child, directory })
  await context.store.runWatches.update(id, { ended: true, data: { ...data, unknown } })
}
