import type { RepoConfig } from '../../domain/config/repository.ts'
import type { Codebase } from '../../domain/environment.ts'
import type { StaleBase } from '../../domain/merge-proof.ts'
import type { CallOptions } from '../../git/door.ts'
import { askRemoteBranch } from '../../git/remote-refs.ts'
import { remoteNames } from '../../git/remote.ts'
import type { Base, Fresh } from './base-branch.ts'
import { baseAndConfig, configuredBase } from './base-and-config.ts'
import { whyNoMergeTarget } from '../merge-proof/base-proof.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

export type FreshBase = {
  readonly base: Base
  readonly config: RepoConfig
  /** Why base can't prove a merge; undefined if it can. */
  readonly stale: StaleBase | undefined
}

/** Base after a fetch, and whether it proves anything: nothing is removed as merged on a stale base. */
export const freshBase = async (
  context: IsolationContext,
  codebase: Codebase,
  fresh: Fresh,
  options: CallOptions = {},
): Promise<FreshBase> => {
  const { base, config } = await baseAndConfig(context, codebase, undefined, options)
  return { base, config, stale: await whyStale(context, codebase, { base, config }, fresh, options) }
}

/**
 * A successful fetch doesn't mean that base is current: the branch may be gone on the remote (we never prune), its ref
 * may not have been updated, or it belongs to another remote. So ask the remote for that branch and, unless a
 * configuration names it, for its default branch: anybody can change git's local record of that.
 */
const whyStale = async (
  { git, log }: Pick<IsolationContext, 'git' | 'log'>,
  codebase: Codebase,
  { base, config }: Omit<FreshBase, 'stale'>,
  { outcome }: Fresh,
  options: CallOptions,
): Promise<StaleBase | undefined> => {
  if (outcome === 'offline') return { kind: 'remote-not-fetched', remote: codebase.remote ?? 'origin' }
  const noTarget = whyNoMergeTarget(codebase, base)
  if (noTarget !== undefined || outcome === 'no-remote') return noTarget
  const repo = repoOf(codebase)
  const remote = (await remoteNames(git, repo)).find((name) => base.ref.startsWith(`refs/remotes/${name}/`))
  if (remote === undefined) return { kind: 'base-of-no-remote', base: base.name }
  const branch = base.ref.slice(`refs/remotes/${remote}/`.length)
  try {
    const { sha, head } = await askRemoteBranch(git, repo, remote, branch, options)
    if (sha === undefined) return { kind: 'base-gone', remote, branch }
    if (configuredBase(codebase, config) === undefined && head !== undefined && head !== branch) {
      return { kind: 'other-default-branch', remote, head, branch }
    }
    return sha === base.sha ? undefined : { kind: 'base-moved', base: base.name, remote }
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    log.info('the remote could not be asked for base', { codebase: codebase.name, error })
    return { kind: 'base-not-asked', base: base.name, remote }
  }
}
