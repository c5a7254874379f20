import { toRepoPath } from '../domain/names.ts'
import { counted } from '../domain/words.ts'
import { readAdminDirs, readHead } from '../git/admin-dir.ts'
import type { Tree } from '../git/door.ts'
import { privateRefsOnlyHere } from '../git/private-refs.ts'
import { countOnNoRemote, countUnreachable, refsWithoutCommits } from '../git/unreachable.ts'
import type { IsolationContext } from './context.ts'
import { fetchedTags } from './fetched-tags.ts'
import { type SubmoduleDir, submoduleDirs } from './submodule-dirs.ts'

export type Unreachable = {
  readonly detail: string
  /** The worktree's own ref that holds it. */
  readonly ref?: string
}

/**
 * Commits that removal would leave unreachable. The branch stays unless it is proven merged or empty, so commits on it
 * are safe; a detached HEAD's are not, nor what only a ref of the worktree's own holds, nor a submodule's that were never
 * pushed: its git directory lies in the worktree's record and goes with it.
 */
export const unreachableCommits = async (context: IsolationContext, tree: Tree): Promise<Unreachable[]> => {
  const found: Unreachable[] = []
  const lost = await detachedCommits(context, tree)
  if (lost > 0) found.push({ detail: `${counted(lost, 'commit')} on a detached HEAD that no branch has` })
  for (const { name, commits } of await privateRefsOnlyHere(context.git, tree)) {
    const detail =
      commits === undefined
        ? `${name} holds what no tag has`
        : `${counted(commits, 'commit')} in ${name} that no branch has`
    found.push({ detail, ref: name })
  }
  for (const { reasons } of await unpushedSubmodules(context, tree)) {
    for (const detail of reasons) found.push({ detail })
  }
  return found
}

/** Submodules that hold what no remote has, and what that is. Starts git only where the worktree's record has any. */
export const unpushedSubmodules = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
): Promise<{ readonly name: string; readonly reasons: readonly string[] }[]> => {
  const found: { name: string; reasons: readonly string[] }[] = []
  for (const module of await submoduleDirs(tree.gitDir)) {
    const reasons = await unpushedIn(context, module)
    if (reasons.length > 0) found.push({ name: module.name, reasons })
  }
  return found
}

const unpushedIn = async ({ git }: Pick<IsolationContext, 'git'>, { name, dir }: SubmoduleDir): Promise<string[]> => {
  // Its files may be gone, or something else in their place: git fails where it cannot enter `core.worktree`.
  const repo: Tree = { commonDir: toRepoPath(dir), gitDir: dir, path: dir }
  const fetched = await fetchedTags(dir)
  const commits = await countOnNoRemote(git, repo, fetched)
  const refs = await refsWithoutCommits(git, repo, fetched)
  const isShared = (await readAdminDirs(dir)).length > 0
  return [
    ...(isShared ? [`submodule ${name} has worktrees of its own`] : []),
    ...(commits > 0 ? [`${counted(commits, 'commit')} in submodule ${name} that were not pushed`] : []),
    ...refs.map((ref) => `${ref} in submodule ${name} was not pushed`),
  ]
}

/** Commits on a detached HEAD that no branch has. Starts git only where HEAD is detached. */
export const detachedCommits = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<number> => {
  const head = await readHead(tree.gitDir)
  if (head === undefined) throw new Error('its HEAD cannot be read')
  return 'sha' in head ? countUnreachable(git, tree, ['HEAD']) : 0
}
