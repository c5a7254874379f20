import type { Unreachable } from '../../../gates.ts'
import { type Sha, toRepoPath } from '../../../../domain/names.ts'
import { counted } from '../../../../domain/words.ts'
import { readAdminDirs, readHead } from '../../../../git/admin-dir.ts'
import type { Tree } from '../../../../git/door.ts'
import { listRefs } from '../../../../git/refs.ts'
import { privateRefsOnlyHere } from '../../../../git/private-refs.ts'
import { countOnNoRemote, countUnreachable, refsWithoutCommits } from '../../../../git/unreachable.ts'
import type { IsolationContext } from '../../../context.ts'
import { askForTags, fetchedTags } from './fetched-tags.ts'
import { type SubmoduleDir, submoduleDirs } from './submodule-dirs.ts'

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
  for (const module of await submoduleDirs(tree.gitDir)) found.push(...(await unpushedIn(context, module, askForTags)))
  return found
}

/** Submodules that hold what no remote is known to have. Starts git only where the worktree's record has any. */
export const unpushedSubmodules = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
): Promise<readonly SubmoduleDir[]> => {
  const found: SubmoduleDir[] = []
  for (const module of await submoduleDirs(tree.gitDir)) {
    if ((await unpushedIn(context, module)).length > 0) found.push(module)
  }
  return found
}

const unpushedIn = async (
  context: Pick<IsolationContext, 'git'>,
  { name, dir }: SubmoduleDir,
  ask?: typeof askForTags,
): Promise<Unreachable[]> => {
  const { git } = context
  // Its files may be gone, or something else in their place: git fails where it cannot enter `core.worktree`.
  const repo: Tree = { commonDir: toRepoPath(dir), gitDir: dir, path: dir }
  let pushed: readonly Sha[] = await fetchedTags(dir)
  let commits = await countOnNoRemote(git, repo, pushed)
  const tags = commits > 0 ? await listRefs(git, repo, ['refs/tags']) : []
  const onlyTags =
    tags.length > 0 &&
    (await countOnNoRemote(
      git,
      repo,
      tags.map(({ sha }) => sha),
    )) === 0
  // Releases are often tagged on commits that no branch has: the remote can tell whether these are such.
  const answer = onlyTags ? await ask?.(context, dir) : undefined
  if (answer !== undefined) {
    pushed = answer
    commits = await countOnNoRemote(git, repo, pushed)
  }
  const submodule = { gitDir: dir, onlyTags }
  const isShared = (await readAdminDirs(dir)).length > 0
  const held = onlyTags ? `that only tags in submodule ${name} have` : `in submodule ${name} that no remote has`
  return [
    ...(isShared ? [{ detail: `submodule ${name} has worktrees of its own` }] : []),
    ...(commits > 0 ? [{ detail: `${counted(commits, 'commit')} ${held}`, submodule }] : []),
    ...(await refsWithoutCommits(git, repo, pushed)).map((ref) => ({
      detail: `${ref} in submodule ${name} was not pushed`,
      submodule: { gitDir: dir, onlyTags: true },
    })),
  ]
}

/** Commits on a detached HEAD that no branch has. Starts git only where HEAD is detached. */
export const detachedCommits = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<number> => {
  const head = await readHead(tree.gitDir)
  if (head === undefined) throw new Error('its HEAD cannot be read')
  return 'sha' in head ? countUnreachable(git, tree, ['HEAD']) : 0
}
