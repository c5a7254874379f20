import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { Repo } from '../domain/tree.ts'
import type { IsolationContext, Provider } from './context.ts'
import type { FollowedRename, GitWorktree, Orphan, Presence } from './provider.ts'

/** The provider named in the environment's row. */
export const providerOf = (
  context: Pick<IsolationContext, 'providers'>,
  { provider }: Pick<IsolatedEnvironment, 'provider'>,
): Promise<Provider> => {
  const load = context.providers.get(provider)
  if (load !== undefined) return load()
  throw unknownProvider(context, provider)
}

const unknownProvider = ({ providers }: Pick<IsolationContext, 'providers'>, provider: string): AppError =>
  new AppError('unsupported', `this version of Coppice has no isolation provider ${JSON.stringify(provider)}`, {
    remedy: `use the version that made it; this one has ${[...providers.keys()].join(' and ')}`,
  })

export const allProviders = ({ providers }: Pick<IsolationContext, 'providers'>): Promise<Provider[]> =>
  Promise.all([...providers.values()].map((load) => load()))

/** Environments grouped by provider, so that each is called once. Omits those with an unknown provider. */
export const byProvider = async (
  context: Pick<IsolationContext, 'providers'>,
  environments: readonly IsolatedEnvironment[],
): Promise<[Provider, IsolatedEnvironment[]][]> => {
  const known = environments.filter(({ provider }) => context.providers.has(provider))
  const groups = Map.groupBy(known, ({ provider }) => provider)
  return Promise.all(
    [...groups.values()].map(async (group): Promise<[Provider, IsolatedEnvironment[]]> => [
      await providerOf(context, group[0]!),
      group,
    ]),
  )
}

/** Is it there, and still this very instance? Starts no process. */
export const presenceOf = async (
  context: Pick<IsolationContext, 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Presence> => {
  const { provider } = environment
  // An environment of a newer version must not block the others.
  if (!context.providers.has(provider)) {
    return { state: 'cannot-tell', detail: unknownProvider(context, provider).message }
  }
  return (await providerOf(context, environment)).presence(codebase, environment)
}

/** A branch can be renamed under its environment. Returns them as they are now, in order; a dry run records nothing. */
export const followRenames = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  options: { readonly dryRun?: boolean | undefined } = {},
): Promise<FollowedRename[]> => {
  const followed = new Map<EnvironmentId, FollowedRename>()
  for (const [provider, served] of await byProvider(context, environments)) {
    for (const one of await provider.followRenames(context, codebase, served, options)) {
      followed.set(one.environment.id, one)
    }
  }
  return environments.map((environment) => followed.get(environment.id) ?? { environment, notices: [] })
}

/** Everything that git lists for the codebase. */
export const gitWorktrees = async (context: IsolationContext, codebase: Codebase): Promise<GitWorktree[]> =>
  (await Promise.all((await allProviders(context)).map((provider) => provider.gitWorktrees(context, codebase)))).flat()

/** Checkouts of the codebase made by others. Reported, never deleted. */
export const orphans = async (context: IsolationContext, codebase: Codebase): Promise<Orphan[]> =>
  (await gitWorktrees(context, codebase)).filter(({ tracked }) => tracked === undefined)

export type BroughtTips = {
  /** The ref in the codebase's repository that holds each one's commits. */
  readonly refs: ReadonlyMap<EnvironmentId, string>
  /** Where the reflogs of their branches are, if not in that repository. */
  readonly logs: ReadonlyMap<EnvironmentId, Repo>
  /** Why a ref may be out of date. */
  readonly problems: ReadonlyMap<EnvironmentId, string>
}

/** Makes the environments' commits available in the codebase's repository. */
export const broughtTips = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
): Promise<BroughtTips> => {
  const refs = new Map<EnvironmentId, string>()
  const logs = new Map<EnvironmentId, Repo>()
  const unknown = environments.filter(({ provider }) => !context.providers.has(provider))
  const problems = new Map(unknown.map(({ id, provider }) => [id, unknownProvider(context, provider).message]))
  for (const [provider, served] of await byProvider(context, environments)) {
    for (const [id, problem] of await provider.importCommits(context, codebase, served)) problems.set(id, problem)
    for (const environment of served) {
      refs.set(environment.id, provider.tipRef(environment))
      const log = provider.ownRepository(environment)
      if (log !== undefined) logs.set(environment.id, log)
    }
  }
  return { refs, logs, problems }
}
