import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { Sha } from '../domain/names.ts'
import { readRefFile } from '../git/ref-file.ts'
import { readRef } from '../git/refs.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { repoOf } from '../isolation/codebases/repo-of.ts'
import { providerOf } from '../isolation/provider-of.ts'

/** Where the environment's branch is now; undefined if it is gone. Starts git only for refs that aren't plain files. */
export const branchTip = async (
  context: Pick<IsolationContext, 'git' | 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Sha | undefined> => {
  const repo = (await providerOf(context, environment)).ownRepository(environment) ?? repoOf(codebase)
  const ref = `refs/heads/${environment.branch}`
  return (await readRefFile(repo.commonDir, ref)) ?? (await readRef(context.git, repo, ref))?.sha
}
