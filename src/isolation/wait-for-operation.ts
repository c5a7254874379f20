import { setTimeout as delay } from 'node:timers/promises'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { type AppError, IsolationBlockedError } from '../domain/errors.ts'
import type { Notice } from '../domain/notice.ts'
import { ReasonedError } from '../domain/reasoned-error.ts'
import { liveness } from '../process/identity.ts'
import { isAbandoned } from './abandon.ts'
import type { IsolationContext } from './context.ts'
import { recoverInterrupted } from './reconcile.ts'
import { coppice, remedy } from '../domain/remedy.ts'

/** A bit longer than a setup script may take. */
const patienceMs = 20 * 60_000

export type WaitOptions = {
  readonly signal?: AbortSignal | undefined
  /** Receives what was recovered. */
  readonly tell: (notice: Notice) => void
}

/**
 * The row once nobody is creating or removing it; undefined when it is gone. If two messages for one work arrive
 * together, the second waits for the first's environment. Settles what a dead process left.
 */
export const waitForOperation = async (
  context: IsolationContext,
  codebase: Codebase,
  known: IsolatedEnvironment,
  { signal, tell }: WaitOptions,
): Promise<IsolatedEnvironment | undefined> => {
  const until = context.clock() + patienceMs
  let environment: IsolatedEnvironment | undefined = known
  let failures = 0
  for (let pauseMs = 10; isUnderWay(environment); pauseMs = Math.min(pauseMs * 2, 500)) {
    if (context.clock() > until) throw stuck(environment)
    if (pauseMs === 500) context.progress(`waiting until ${environment.branch} is no longer ${environment.status}`)
    const { settled, left } = await recoverInterrupted(context, codebase)
    for (const notice of settled) tell(notice)
    environment = await context.store.environments.get(known.id)
    if (!isUnderWay(environment)) break
    const holder = await holderOf(context, environment)
    // Twice: it may have died after we first looked for interrupted operations.
    failures += holder === 'dead' ? 1 : 0
    if (holder === 'nobody' || failures > 1) throw stuck(environment, left)
    await delay(pauseMs, undefined, signal === undefined ? {} : { signal })
  }
  return environment
}

const isUnderWay = (environment: IsolatedEnvironment | undefined): environment is IsolatedEnvironment =>
  environment?.status === 'creating' || environment?.status === 'removing'

/** Who is making or removing it. Waiting for the dead, or for nobody, would never end. */
const holderOf = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  { id, codebaseId, status }: IsolatedEnvironment,
): Promise<'alive' | 'dead' | 'nobody'> => {
  const open = await context.store.journal.open(context.host, codebaseId)
  const entry = open.find(({ environmentId }) => environmentId === id)
  if (entry !== undefined) return isAbandoned(entry) || liveness(entry.holder) === 'dead' ? 'dead' : 'alive'
  // It may have ended between the two queries.
  return (await context.store.environments.get(id))?.status === status ? 'nobody' : 'alive'
}

const stuck = ({ branch, status }: IsolatedEnvironment, left: readonly Notice[] = []): AppError =>
  left.length === 0
    ? new IsolationBlockedError(`${branch} is ${status}, and no process is working on it`, tryAgain)
    : new ReasonedError(
        'isolation-blocked',
        `${branch} is ${status}, and an interrupted operation couldn't be finished or undone`,
        left,
        tryAgain,
      )

const tryAgain = { remedy: remedy`run ${coppice('doctor --fix')} to try again` }
