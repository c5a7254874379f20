import type { Codebase } from '../../domain/environment.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { mainHead } from '../../git/admin-dir.ts'
import { isUserScope, lastValue } from '../../git/config-entries.ts'
import { branchesMadeBy } from '../merge-proof/base-proof.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

export type DefaultBranch = {
  /** What it was found to be before; it wins as long as there is such a branch. */
  readonly remembered: string | undefined
  /** Other names, best first. The first that exists is it. */
  readonly candidates: readonly string[]
}

const usualNames = ['main', 'master', 'trunk']

/**
 * Which branch is the default one when no remote says so. It must not hang on what happens to be checked out: looking at
 * work with `git checkout --detach` or on a review branch would make that work merged. So the checkout is asked last, and
 * only while no environment of ours is there whose work could be taken for merged; and an environment's own branch is
 * never it.
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
