import type { RepoConfig } from '../../domain/config/repository.ts'
import type { Codebase } from '../../domain/environment.ts'
import { isAppError } from '../../domain/errors.ts'
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
  const usual = await usualOr(context, codebase, override, options)
  const config = await loadRepoConfig(context, codebase, usual.sha)
  if (override !== undefined) return { config, base: await findBase(context, codebase, override, options) }
  if (config.base === undefined) return { config, base: usual }
  const base = await findBase(context, codebase, config.base, options)
  // ORIG_HEAD and the like change with anything done in the checkout, and so would what counts as merged.
  if (base.ref === base.sha && !/^[0-9a-f]+$/.test(config.base)) throw baseNotFound(codebase, config.base)
  return { config, base }
}

/** Without a default branch, read the configuration at the base that was named. */
const usualOr = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  override: string | undefined,
  options: BaseOptions,
): Promise<Base> => {
  try {
    return await findBase(context, codebase, undefined, options)
  } catch (error) {
    if (override === undefined || !isAppError(error, 'base-not-found')) throw error
    return findBase(context, codebase, override, options)
  }
}
