import { lstat, readFile, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { toRepoPath } from '../domain/names.ts'
import { shownPath, toRaw } from '../domain/raw-path.ts'
import { halfDone } from '../git/admin-dir.ts'
import type { Tree } from '../git/door.ts'
import { hiddenEdits } from '../git/hidden.ts'
import { readStatus } from '../git/status.ts'
import { listSubmodules } from '../git/submodule.ts'
import type { IsolationContext } from './context.ts'
import { unlessMissing } from './worktree/missing.ts'

/**
 * Submodules with changes, nested ones too. Each has a repository and a configuration of its own, so each is asked
 * through the door on its own: `git status` would run their filters.
 */
export const dirtySubmodules = async (context: IsolationContext, tree: Tree, prefix = ''): Promise<string[]> => {
  if (!(await mayHaveSubmodules(tree))) return []
  const dirty: string[] = []
  for (const { bytes } of await listSubmodules(context.git, tree)) {
    const path = toRaw(bytes)
    const inner = await submoduleTree(tree, shownPath(path))
    if (inner === undefined) continue
    const [status, hidden] = await Promise.all([readStatus(context.git, inner), hiddenEdits(context.git, inner)])
    const count = status.changed.length + status.unmerged.length + status.untracked.length + hidden.length
    if (count > 0 || halfDone(inner.gitDir).length > 0) dirty.push(`${prefix}${path}`)
    dirty.push(...(await dirtySubmodules(context, inner, `${prefix}${path}/`)))
  }
  return dirty
}

/** Most repositories have none, and then no process is started for them. */
const mayHaveSubmodules = async (tree: Tree): Promise<boolean> =>
  (await unlessMissing(lstat(join(tree.path, '.gitmodules')))) !== undefined ||
  (await unlessMissing(lstat(join(tree.gitDir, 'modules')))) !== undefined

/** Undefined for a submodule that was never brought: its directory is empty. */
const submoduleTree = async (tree: Tree, path: string): Promise<Tree | undefined> => {
  const directory = join(tree.path, path)
  const link = join(directory, '.git')
  const found = await unlessMissing(lstat(link))
  if (found === undefined) return undefined
  const gitDir = found.isDirectory()
    ? link
    : resolve(directory, /^gitdir: (.+)$/m.exec(await readFile(link, 'utf8'))?.[1]?.trim() ?? '.git')
  const real = await realpath(gitDir)
  return { commonDir: toRepoPath(real), gitDir: real, path: directory }
}
