import { setTimeout as delay } from 'node:timers/promises'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { IsolationBlockedError } from '../domain/errors.ts'
import type { IsolationContext } from './context.ts'
import { settleInterrupted } from './reconcile.ts'

/** As long as a setup script may take, and some more. */
const patienceMs = 20 * 60_000

/**
 * The row once nobody is making or removing it any more; undefined when it is gone. Two messages for one work that
 * arrive together get one environment, and the second waits for the first. What a dead process left is settled here.
 */
export const whenSettled = async (
  context: IsolationContext,
  codebase: Codebase,
  known: IsolatedEnvironment,
  signal?: AbortSignal,
): Promise<IsolatedEnvironment | undefined> => {
  const until = context.clock() + patienceMs
  let environment: IsolatedEnvironment | undefined = known
  for (let pauseMs = 10; isUnderWay(environment); pauseMs = Math.min(pauseMs * 2, 500)) {
    if (context.clock() > until) throw stuck(environment)
    if (pauseMs === 500) context.progress(`waiting until ${environment.branch} is no longer ${environment.status}`)
    await settleInterrupted(context, codebase)
    environment = await context.store.environments.get(known.id)
    if (isUnderWay(environment) && !(await isWorkedOn(context, environment))) throw stuck(environment)
    if (isUnderWay(environment)) await delay(pauseMs, undefined, signal === undefined ? {} : { signal })
  }
  return environment
}

const isUnderWay = (environment: IsolatedEnvironment | undefined): environment is IsolatedEnvironment =>
  environment?.status === 'creating' || environment?.status === 'removing'

/** No open operation speaks of it: nobody will ever settle it, and waiting would only hide that. */
const isWorkedOn = async (
  context: IsolationContext,
  { id, codebaseId, status }: IsolatedEnvironment,
): Promise<boolean> => {
  const open = await context.store.journal.open(context.host, codebaseId)
  if (open.some((entry) => entry.environmentId === id)) return true
  // It may have ended between the two questions.
  return (await context.store.environments.get(id))?.status !== status
}

const stuck = ({ branch, status }: IsolatedEnvironment): IsolationBlockedError =>
  new IsolationBlockedError(`${branch} is ${status}, and nobody is working on it`, {
    remedy: 'run `coppice doctor --fix`',
  })
