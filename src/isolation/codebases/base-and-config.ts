import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { RepoConfig } from '../../domain/config/repository.ts'
import type { Codebase } from '../../domain/environment.ts'
import { isAppError } from '../../domain/errors.ts'
import { unlessMissingSync } from '../../domain/missing.ts'
import { readSymbolicRefFile } from '../../git/symbolic-ref-file.ts'
import { type BaseOptions, baseNotFound, findBase } from './base.ts'
import type { Base } from './base-branch.ts'
import type { IsolationContext } from '../context.ts'
import { loadRepoConfig } from './repo-config.ts'

/** The repository's configuration comes from the base commit, not from the work's branch, and may name another base. */
export const baseAndConfig = async (
  context: IsolationContext,
  codebase: Codebase,
  override?: string,
  options: BaseOptions = {},
): Promise<{ base: Base; config: RepoConfig }> => {
  const usual = await usualOr(context, codebase, override ?? codebase.base, options)
  const config = await loadRepoConfig(context, codebase, usual.sha)
  if (override !== undefined) return { config, base: await findBase(context, codebase, override, options) }
  const named = configuredBase(codebase, config)
  if (named === undefined) return { config, base: usual }
  const base = await findBase(context, codebase, named, options)
  // ORIG_HEAD and the like change with anything done in the checkout, and so would what counts as merged.
  if (base.ref === base.sha && !/^[0-9a-f]+$/.test(named)) throw baseNotFound(codebase, named)
  return { config, base }
}

/** The repository's own `worktree.base`, else the one set for it here. Undefined: the default branch. */
export const configuredBase = (codebase: Codebase, config: RepoConfig): string | undefined =>
  config.base ?? codebase.base

/**
 * The repository's configuration, for every message: starts no git while the files that say where the base is are the
 * same as last time. Undefined if only the remote could say which branch is the base: a message doesn't wait for that.
 */
export const currentConfig = async (context: IsolationContext, codebase: Codebase): Promise<RepoConfig | undefined> => {
  const stamp = baseStamp(codebase)
  if (stamp === undefined && codebase.remote !== undefined) return undefined
  const known = context.repoConfigs.get(codebase.id)
  if (stamp !== undefined && known?.stamp === stamp) return known.config
  const { config } = await baseAndConfig(context, codebase)
  const read = context.repoConfigs.get(codebase.id)
  if (read !== undefined && stamp !== undefined) context.repoConfigs.set(codebase.id, { ...read, stamp })
  return config
}

/** Undefined if the name of the base isn't known yet. */
const baseStamp = ({ repoPath, remote, baseBranch, base }: Codebase): string | undefined => {
  const root = remote === undefined ? 'refs/heads' : `refs/remotes/${remote}`
  const noted = remote === undefined ? undefined : readSymbolicRefFile(repoPath, `${root}/HEAD`)
  const branch = baseBranch ?? base
  const ref = noted ?? (branch === undefined ? undefined : `${root}/${branch}`)
  if (ref === undefined) return undefined
  return [ref, 'packed-refs', 'HEAD', 'reftable/tables.list'].map((file) => fileStamp(join(repoPath, file))).join()
}

const fileStamp = (path: string): string => {
  const stat = unlessMissingSync(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }))
  return stat === undefined ? 'none' : `${stat.ino}:${stat.ctimeNs}:${stat.size}`
}

/** Without a default branch, read the configuration at the base that was named. */
const usualOr = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  named: string | undefined,
  options: BaseOptions,
): Promise<Base> => {
  try {
    return await findBase(context, codebase, undefined, options)
  } catch (error) {
    if (named === undefined || !isAppError(error, 'base-not-found')) throw error
    return findBase(context, codebase, named, options)
  }
}
