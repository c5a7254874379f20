import type { Codebase } from '../../domain/environment.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { mainHead } from '../../git/admin-dir.ts'
import { isUserScope, lastValue } from '../../git/config-entries.ts'
import { branchesMadeBy } from '../merge-proof/base-proof.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

export type DefaultBranch = {
  /** What it was before; it wins as long as that branch exists. */
  readonly remembered: string | undefined
  /** Other names, best first. The first that exists wins. */
  readonly candidates: readonly string[]
}

const usualNames = ['main', 'master', 'trunk']

/**
 * The default branch when no remote tells. It must not depend on what happens to be checked out: viewing work with `git
 * checkout --detach` or on a review branch would make that work count as merged. So the checkout comes last, and only
 * if there is no environment of ours whose work could count as merged. An environment's own branch is never it.
 */
export const defaultBranch = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
): Promise<DefaultBranch> => {
  const { store, git } = context
  const remembered = (await store.codebases.get(codebase.id))?.baseBranch ?? codebase.baseBranch
  const live = await store.environments.live(codebase.id)
  const user = (await git.config(repoOf(codebase))).filter(isUserScope)
  const started = live.toSorted((a, b) => a.createdAt - b.createdAt).map(({ baseBranch }) => baseBranch)
  const checkedOut = live.some(({ owned }) => owned) ? undefined : await headBranch(codebase)
  const names = [...started, lastValue(user, 'init.defaultbranch'), ...usualNames, checkedOut]
  const made = branchesMadeBy(live)
  const usable = (name: string | undefined): name is string =>
    name !== undefined && branchNameProblem(name) === undefined && !made.has(name)
  return { remembered, candidates: [...new Set(names.filter(usable))] }
}

const headBranch = async ({ repoPath }: Codebase): Promise<string | undefined> => {
  const head = await mainHead(repoPath)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}
