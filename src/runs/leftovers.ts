import { toAppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { liveness, startedBefore } from '../process/identity.ts'
import { processesInside } from '../process/inside.ts'
import { type LeftProcess, lookAgainWhile, markedProcesses, namedProcess } from '../process/marked-processes.ts'
import { processesOfRuns, type RunMark } from '../process/run-mark.ts'
import { processTable } from '../process/table.ts'
import type { ProcessRow } from '../process/process-row.ts'
import { collectTree, selfAndAncestors } from '../process/tree.ts'

/** Processes that are there after a run. */
export type Leftovers = {
  /** Started by the run: they bear its mark, or came from one that does. */
  readonly own: readonly LeftProcess[]
  /** In its directory and younger than the run, but nothing says whose: they may be a person's own shell or editor. */
  readonly unknown: readonly LeftProcess[]
  /** Why nobody could look. */
  readonly problem?: string
}

export const isAnythingLeft = ({ own, unknown, problem }: Leftovers): boolean =>
  own.length + unknown.length > 0 || problem !== undefined

export const nothingLeft: Leftovers = { own: [], unknown: [] }

export type EndedRun = {
  readonly mark: RunMark
  /** The agent's own process; undefined when it never came to be. */
  readonly child: ProcessIdentity | undefined
  /** Where to look for processes without the mark; undefined in the shared checkout, where people work. */
  readonly directory: string | undefined
}

/** What a run left running. */
export const leftoversOf = async (context: Context, run: EndedRun): Promise<Leftovers> => {
  // The demo works in our own process: then nothing that is there came from it.
  if (run.child === undefined || run.child.pid === context.self.pid) return nothingLeft
  try {
    return await settled(context, run)
  } catch (error) {
    const problem = toAppError(error).message
    context.log.warn('what a run left could not be looked at', { error: problem })
    return { ...nothingLeft, problem }
  }
}

type Context = Pick<IsolationContext, 'self' | 'log'> & { readonly git: Pick<IsolationContext['git'], 'running'> }

const settled = (context: Context, run: EndedRun): Promise<Leftovers> =>
  lookAgainWhile(isAnythingLeft, async (before) => {
    const { own, unknown } = await lookOnce(context, run)
    const seen = new Set((before?.unknown ?? unknown).map(({ pid }) => pid))
    return { own, unknown: unknown.filter(({ pid }) => seen.has(pid)) }
  })

const lookOnce = async ({ git, self }: Context, { mark, child, directory }: EndedRun): Promise<Leftovers> => {
  const marked = (await processesOfRuns([mark])).map(({ identity }) => identity)
  const rows = (await processTable()).filter(({ zombie }) => !zombie)
  const untouchable = selfAndAncestors(rows, self.pid)
  const own = new Set(collectTree(rows, marked).flatMap(({ pid }) => (untouchable.has(pid) ? [] : [pid])))
  const inside = directory === undefined ? [] : (await processesInside([directory], { except: git.running })).inside
  const there = new Set(inside.map(({ pid }) => pid))
  const isUnknown = ({ identity }: ProcessRow): boolean =>
    there.has(identity.pid) &&
    !own.has(identity.pid) &&
    !untouchable.has(identity.pid) &&
    // Our own git and the like.
    !selfAndAncestors(rows, identity.pid).has(self.pid) &&
    child !== undefined &&
    !startedBefore(identity, child)
  return {
    own: rows.filter(({ identity }) => own.has(identity.pid)).map(namedProcess),
    unknown: rows.filter(isUnknown).map(namedProcess),
  }
}

/** Of those that were there after the run, who still is. */
export const stillThere = async (mark: RunMark, unknown: readonly LeftProcess[]): Promise<Leftovers> => ({
  own: await markedProcesses([mark]),
  unknown: unknown.filter((identity) => liveness(identity) !== 'dead'),
})
