/*
 * Environments. In: which work, in which codebase. Out: an environment that exists, removed or restored. `resolve.ts`
 * finds the environment of a message, `reconcile.ts` recovers after a crash, `facts.ts` lists, `lease.ts` marks one as
 * in use.
 */
import type { RepoConfig } from '../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { CodebaseId } from '../domain/names.ts'
import type { Notice } from '../domain/notice.ts'
import { type ProviderName, stricter } from '../domain/provider-name.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import type { Tree } from '../domain/tree.ts'
import { isAboutPullRequest } from '../domain/work.ts'
import { freshen } from './codebases/base.ts'
import { baseAndConfig } from './codebases/base-and-config.ts'
import { offerRelated } from './codebases/related.ts'
import type { IsolationContext, Provider } from './context.ts'
import type {
  AdoptRequest,
  Created,
  Examined,
  ExamineRequest,
  Existing,
  Glance,
  IsolationRequest,
  LimitReached,
  Restored,
} from './provider.ts'
import type { RemoveOptions, RemoveOutcome } from './remove-outcome.ts'
import { allProviders, providerOf } from './provider-of.ts'

/** Create, remove, restore and adopt environments through the provider of each. */
export type Environments = {
  create(request: IsolationRequest): Promise<Created | Existing | LimitReached>
  destroy(environment: IsolatedEnvironment, options: RemoveOptions): Promise<RemoveOutcome>
  restore(point: RestorePoint, lookAgain?: () => Promise<RestorePoint>): Promise<Restored>
  adopt(codebase: Codebase, path: string, request: AdoptRequest): Promise<IsolatedEnvironment>
  /** What `adopt` would record. Throws why it would refuse. Changes nothing. */
  examine(codebase: Codebase, path: string, request: ExamineRequest): Promise<Examined>
  glance(tree: Tree, signal: AbortSignal): Promise<Glance>
}

export const createEnvironments = (context: IsolationContext): Environments => {
  const codebaseOf = async (id: CodebaseId): Promise<Codebase> => {
    const codebase = await context.store.codebases.get(id)
    if (codebase === undefined) throw new AppError('not-found', 'its repository is no longer registered')
    return codebase
  }
  return {
    create: (request) => create(context, request),
    destroy: async (environment, options) =>
      (await providerOf(context, environment)).destroy(
        context,
        await codebaseOf(environment.codebaseId),
        environment,
        options,
      ),
    restore: async (point, lookAgain) =>
      (await providerOf(context, point.contents.environment)).restore(
        context,
        await codebaseOf(point.codebaseId),
        point,
        lookAgain,
      ),
    adopt: async (codebase, path, request) => (await adopter(context)).adopt(context, codebase, path, request),
    examine: async (codebase, path, request) => (await adopter(context)).examine(context, codebase, path, request),
    glance: async (tree, signal) => (await adopter(context)).glance(context, tree, { signal }),
  }
}

/** By the provider that makes the codebase's environments. */
export const keepSpares = async (context: IsolationContext, codebase: Codebase): Promise<number> => {
  const { config } = await baseAndConfig(context, codebase)
  const provider = await providerOf(context, { provider: chosen(context, config) })
  return provider.can.keepSpares ? provider.keepSpares(context, codebase) : 0
}

const chosen = (
  { settings: { isolationProvider } }: Pick<IsolationContext, 'settings'>,
  { provider }: RepoConfig,
  wanted: ProviderName = isolationProvider,
): ProviderName => (provider === undefined ? wanted : stricter(provider, wanted))

/** Fetches, then creates with the configured provider: the home's configuration, or the repository's own. */
const create = async (
  context: IsolationContext,
  request: IsolationRequest,
): Promise<Created | Existing | LimitReached> => {
  const offline = await freshenFor(context, request)
  const start = await baseAndConfig(context, request.codebase, request.base)
  const provider = await providerOf(context, { provider: chosen(context, start.config, request.provider) })
  const baseNamed = request.base !== undefined
  let offered: Promise<Notice[]> | undefined
  const offer = (): Promise<Notice[]> =>
    (offered ??= offerRelated(context, request, baseNamed ? undefined : start.base))
  const made = await provider.create(context, { ...request, ...start, baseNamed, whileWriting: () => void offer() })
  return made.outcome === 'created' ? { ...made, notices: [...offline, ...made.notices, ...(await offer())] } : made
}

const freshenFor = async (
  context: IsolationContext,
  { codebase, hints, work, signal }: IsolationRequest,
): Promise<Notice[]> => {
  // The plan always fetches the PR's own refs; a second fetch of everything would only cost time.
  if (isAboutPullRequest(work) || hints.prBranch !== undefined) return []
  const fresh = await freshen(context, codebase, { maxAgeMs: context.settings.fetchFreshSeconds * 1000, signal })
  return fresh.outcome === 'offline' ? [{ kind: 'not-fetched', why: fresh.detail ?? 'no answer' }] : []
}

const adopter = async (context: Pick<IsolationContext, 'providers'>): Promise<Provider> => {
  const found = (await allProviders(context)).find(({ can }) => can.adopt)
  if (found === undefined) throw new AppError('not-adoptable', 'no isolation provider here can adopt a worktree')
  return found
}
