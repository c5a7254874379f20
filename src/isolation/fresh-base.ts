import type { RepoConfig } from '../domain/config.ts'
import type { Codebase } from '../domain/environment.ts'
import type { CallOptions } from '../git/door.ts'
import { askRemoteRefs } from '../git/remote-refs.ts'
import { remoteNames } from '../git/remote.ts'
import type { Base, Fresh } from './base.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { IsolationContext } from './context.ts'
import { repoOf } from './repo-of.ts'

export type FreshBase = {
  readonly base: Base
  readonly config: RepoConfig
  /** Why base may not be what the remote has now ("couldn't fetch origin"); undefined when it is, or there is no remote. */
  readonly stale: string | undefined
}

/** Base after a fetch, and whether it can be believed: on a stale base nothing is removed as merged. */
export const freshBase = async (
  context: IsolationContext,
  codebase: Codebase,
  fresh: Fresh,
  options: CallOptions = {},
): Promise<FreshBase> => {
  const { base, config } = await baseAndConfig(context, codebase, undefined, options)
  return { base, config, stale: await whyStale(context, codebase, base, fresh, options) }
}

/**
 * That git could fetch does not say that base is current: the branch may be gone on the remote (we never prune), or its
 * ref could not be updated, or it is of another remote than the one we fetch. So the remote is asked for that branch.
 */
const whyStale = async (
  { git, log }: IsolationContext,
  codebase: Codebase,
  base: Base,
  { outcome }: Fresh,
  options: CallOptions,
): Promise<string | undefined> => {
  if (outcome === 'no-remote') return undefined
  if (outcome === 'offline') return `couldn't fetch ${codebase.remote ?? 'origin'}`
  if (!base.ref.startsWith('refs/remotes/')) return undefined
  const repo = repoOf(codebase)
  const remote = (await remoteNames(git, repo)).find((name) => base.ref.startsWith(`refs/remotes/${name}/`))
  if (remote === undefined) return `${base.name} belongs to no remote`
  const name = base.ref.replace(`refs/remotes/${remote}/`, 'refs/heads/')
  try {
    const there = (await askRemoteRefs(git, repo, remote, { only: [name], ...options })).get(name)
    if (there === undefined) return `${remote} has no branch ${name.slice('refs/heads/'.length)} any more`
    return there === base.sha ? undefined : `${base.name} is not what ${remote} has now`
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    log.info('the remote could not be asked for base', { codebase: codebase.name, error })
    return `couldn't ask ${remote} for ${base.name}`
  }
}
