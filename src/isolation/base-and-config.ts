import type { RepoConfig } from '../domain/config.ts'
import type { Codebase } from '../domain/environment.ts'
import { type Base, type BaseOptions, findBase } from './base.ts'
import type { IsolationContext } from './context.ts'
import { loadRepoConfig } from './repo-config.ts'

/** The repository's configuration comes from the base commit, never from the work's branch, and may name another base. */
export const baseAndConfig = async (
  context: IsolationContext,
  codebase: Codebase,
  override?: string,
  options: BaseOptions = {},
): Promise<{ base: Base; config: RepoConfig }> => {
  const usual = await findBase(context, codebase, undefined, options)
  const config = await loadRepoConfig(context, codebase, usual.sha)
  const named = override ?? config.base
  return { config, base: named === undefined ? usual : await findBase(context, codebase, named, options) }
}
