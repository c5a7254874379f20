import { toAppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { liveness, startedBefore } from '../process/identity.ts'
import { processesInside } from '../process/inside/processes-inside.ts'
import type { KillOutcome } from '../process/kill.ts'
import { type LeftProcess, retryWhile, markedProcesses, namedProcess } from '../process/marked-processes.ts'
import type { RunMark } from '../process/run-mark.ts'
import { processTable } from '../process/table.ts'
import type { ProcessRow } from '../process/process-row.ts'
import { collectTree, selfAndAncestors } from '../process/tree.ts'

/** Processes left after a run. */
export type Leftovers = {
  /** Started by the run: marked, or descended from a marked process. */
  readonly own: readonly LeftProcess[]
  /** In its directory and younger than the run, but of unknown origin: maybe the user's shell or editor. */
  readonly unknown: readonly LeftProcess[]
  /** Something is left without a known PID: it keeps forking, or is in another PID namespace. */
  readonly unnamed?: true
  /** Why the check failed. */
  readonly problem?: string
}

export const isAnythingLeft = ({ own, unknown, unnamed, problem }: Leftovers): boolean =>
  own.length + unknown.length > 0 || unnamed === true || problem !== undefined

export const nothingLeft: Leftovers = { own: [], unknown: [] }

export type RunToCheck = {
  readonly mark: RunMark
  /** The agent's process; undefined if it never started. */
  readonly child: ProcessIdentity | undefined
  /** Where to look for unmarked processes; undefined in the shared checkout, where people work. */
  readonly directory: string | undefined
}

export const leftoversOf = async (context: Context, run: RunToCheck): Promise<Leftovers> => {
  // The demo agent runs in our own process, so it leaves none.
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

const settled = (context: Context, run: RunToCheck): Promise<Leftovers> =>
  retryWhile(isAnythingLeft, async (before) => {
    const found = await lookOnce(context, run)
    const seen = new Set((before ?? found).unknown.map(({ pid }) => pid))
    return { ...found, unknown: found.unknown.filter(({ pid }) => seen.has(pid)) }
  })

const lookOnce = async ({ git, self }: Context, { mark, child, directory }: RunToCheck): Promise<Leftovers> => {
  const marked = await markedProcesses([mark])
  const rows = (await processTable()).filter(({ zombie }) => !zombie)
  const untouchable = selfAndAncestors(rows, self.pid)
  const isMarked = marked.unnamed || marked.named.some(({ pid }) => !untouchable.has(pid))
  const own = new Set(collectTree(rows, marked.seen).flatMap(({ pid }) => (untouchable.has(pid) ? [] : [pid])))
  const inside = directory === undefined ? [] : (await processesInside([directory], { except: git.running })).inside
  const there = new Set(inside.map(({ pid }) => pid))
  const isUnknown = ({ identity }: ProcessRow): boolean =>
    there.has(identity.pid) &&
    !own.has(identity.pid) &&
    !untouchable.has(identity.pid) &&
    // Our own git etc.
    !selfAndAncestors(rows, identity.pid).has(self.pid) &&
    child !== undefined &&
    !startedBefore(identity, child)
  return {
    own: rows.filter(({ identity }) => own.has(identity.pid)).map(namedProcess),
    unknown: rows.filter(isUnknown).map(namedProcess),
    // Even if one had a PID a moment ago: it may have handed over to its child and ended.
    ...(isMarked && own.size === 0 ? { unnamed: true } : {}),
  }
}

/** Those of the run's leftovers that are still alive. */
export const stillThere = async (mark: RunMark, unknown: readonly LeftProcess[]): Promise<Leftovers> => {
  const { named, unnamed } = await markedProcesses([mark])
  const there = unknown.filter((identity) => liveness(identity) !== 'dead')
  return { own: named, unknown: there, ...(unnamed ? { unnamed } : {}) }
}

/** What is left after a kill: never empty if the kill reports survivors. */
export const survivorsOf = async (killed: KillOutcome, marks: readonly RunMark[]): Promise<Leftovers> => {
  const { named, unnamed } = await markedProcesses(marks)
  if (killed.outcome !== 'survivors') return { own: named, unknown: [], ...(unnamed ? { unnamed } : {}) }
  const survived = new Map(killed.identities.map(({ pid, startTime }) => [pid, startTime]))
  const rows = (await processTable()).filter(
    ({ identity, zombie }) => !zombie && survived.get(identity.pid) === identity.startTime,
  )
  const own = new Map([...rows.map(namedProcess), ...named].map((one) => [one.pid, one]))
  return { own: [...own.values()], unknown: [], ...(own.size === 0 ? { unnamed: true } : {}) }
}
