import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { NotIsolatedError, toAppError } from '../domain/errors.ts'
import type { Launch } from '../domain/program.ts'
import { isOwnMessage, isTrusted } from '../domain/trust.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { followed } from '../isolation/moved.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'
import { providerOf } from '../isolation/provider-of.ts'
import type { LimitReport } from '../isolation/resolve/resolution.ts'
import type { RunsContext } from './context.ts'
import type { RunRequest } from './request.ts'

/** Where the agent works. Without an environment it reads in the shared checkout, under the tripwire. */
export type Workspace = {
  readonly directory: string
  /** How to start a program there; undefined: directly. */
  readonly launch?: Launch
  readonly environment: IsolatedEnvironment | undefined
  /** Both files and request come from the repository itself. */
  readonly trusted: boolean
}

export const workspaceFor = async (
  context: RunsContext,
  request: RunRequest,
): Promise<Workspace | { readonly outcome: 'limit'; readonly report: LimitReport }> => {
  // An untrusted pull request is read in its own worktree, never beside the checkout's secrets.
  const readsHere = !request.needsIsolation && isOwnMessage(request.work, request.hints)
  const place = readsHere ? await readOnlyWorkspace(context, request) : undefined
  return place ?? isolatedWorkspace(context, request)
}

/** A read-only run uses the holder's environment if any, else the checkout. */
const readOnlyWorkspace = async (
  { isolation }: RunsContext,
  { holder, codebase }: RunRequest,
): Promise<Workspace | undefined> => {
  const own =
    holder.environmentId === undefined ? undefined : await isolation.store.environments.get(holder.environmentId)
  if (own?.status === 'active') {
    const { environment } = await followed(isolation, codebase, own)
    return { ...(await workspaceIn(isolation, environment)), trusted: isTrusted(environment.trust) }
  }
  // A bare repository has no files to read, so create an environment.
  const { checkoutPath } = codebase
  return checkoutPath === undefined ? undefined : { directory: checkoutPath, environment: undefined, trusted: true }
}

const isolatedWorkspace = async (
  { isolation, environments }: RunsContext,
  { codebase, work, hints, firstMessage, holder, reportTo, reporter, signal }: RunRequest,
): Promise<Workspace | { readonly outcome: 'limit'; readonly report: LimitReport }> => {
  const { persistent = false } = holder
  const first = firstMessage === undefined ? {} : { firstMessage }
  const request = { codebase, work, hints, ...first, holder, createdBy: reportTo.platform, persistent, signal }
  const resolution = await orNotIsolated(codebase, async () =>
    resolveIsolation(isolation, await environments(), request),
  )
  if (resolution.outcome === 'limit') return resolution
  const { environment, trusted } = resolution
  const isNew = holder.environmentId !== environment.id
  await reporter.placed({ ...resolution, isNew })
  reporter.committed()
  return { ...(await workspaceIn(isolation, environment)), trusted }
}

/** Whatever goes wrong before the agent starts in its environment: the user is told that nothing was run. */
export const orNotIsolated = async <T>({ name }: Pick<Codebase, 'name'>, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw new NotIsolatedError(toAppError(error), name)
  }
}

const workspaceIn = async (
  isolation: Pick<IsolationContext, 'providers'>,
  environment: IsolatedEnvironment,
): Promise<Pick<Workspace, 'directory' | 'environment' | 'launch'>> => {
  const provider = await providerOf(isolation, environment)
  return { directory: environment.path, environment, launch: (program) => provider.launch(environment, program) }
}
