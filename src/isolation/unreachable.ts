import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { toRepoPath } from '../domain/names.ts'
import { counted } from '../domain/words.ts'
import { readHead } from '../git/admin-dir.ts'
import type { Tree } from '../git/door.ts'
import { privateRefsOnlyHere } from '../git/private-refs.ts'
import { countUnpushed, countUnreachable } from '../git/unreachable.ts'
import type { IsolationContext } from './context.ts'

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
  for (const { name, commits } of await unpushedSubmodules(context, tree)) {
    found.push({ detail: `${counted(commits, 'commit')} in submodule ${name} that were not pushed` })
  }
  return found
}

/** Starts git only where the worktree's record has submodules. */
export const unpushedSubmodules = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
): Promise<{ readonly name: string; readonly commits: number }[]> => {
  const found: { name: string; commits: number }[] = []
  for (const { name, dir } of await submoduleDirs(join(tree.gitDir, 'modules'))) {
    // Its files may be gone, or something else in their place: git fails where it cannot enter `core.worktree`.
    const repo: Tree = { commonDir: toRepoPath(dir), gitDir: dir, path: dir }
    const commits = await countUnpushed(git, repo)
    if (commits > 0) found.push({ name, commits })
  }
  return found
}

/** Commits on a detached HEAD that no branch has. Starts git only where HEAD is detached. */
export const detachedCommits = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<number> => {
  const head = await readHead(tree.gitDir)
  if (head === undefined) throw new Error('its HEAD cannot be read')
  return 'sha' in head ? countUnreachable(git, tree, ['HEAD']) : 0
}

/** Submodules' git directories, also nested ones (`modules/a/modules/b`, `modules/dir/a`). */
const submoduleDirs = async (root: string, prefix = ''): Promise<{ name: string; dir: string }[]> => {
  const entries = await readdir(root, { withFileTypes: true }).catch((error: unknown) => {
    // Not ENOTDIR: a file in its place is something that we do not understand.
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  const found: { name: string; dir: string }[] = []
  for (const entry of entries.filter((one) => one.isDirectory())) {
    const dir = join(root, entry.name)
    const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    if ((await readHead(dir)) === undefined) found.push(...(await submoduleDirs(dir, name)))
    else found.push({ name, dir }, ...(await submoduleDirs(join(dir, 'modules'), name)))
  }
  return found
}
