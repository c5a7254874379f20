import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { type CommitLine, commitsBetween } from '../../git/commits-between.ts'
import type { CallOptions } from '../../git/door.ts'
import { readRef } from '../../git/refs.ts'
import type { IsolationContext } from '../context.ts'
import { broughtTips } from '../provider-of.ts'
import { baseOfEnvironment } from './environment-base.ts'
import { repoOf } from './repo-of.ts'

/** The environment's commits that base doesn't have, newest first. Undefined if its branch can't be found. */
export const branchCommits = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { limit, ...options }: CallOptions & { readonly limit: number },
): Promise<readonly CommitLine[] | undefined> => {
  const ref = (await broughtTips(context, codebase, [environment])).refs.get(environment.id)
  const tip = ref === undefined ? undefined : await readRef(context.git, repoOf(codebase), ref)
  if (tip === undefined) return undefined
  const { sha: from } = await baseOfEnvironment(context, codebase, environment)
  return commitsBetween(context.git, repoOf(codebase), { from, to: tip.sha, limit }, options)
}
