import type { CallOptions, Git, Tree } from './door.ts'
import { readIndexState } from './hidden.ts'
import { scanIndex } from './index-scan.ts'
import type { Setting } from './neutral.ts'
import { parseStatus } from './status.ts'
import type { TreePath } from './tree-path.ts'

export type ChangeCounts = {
  readonly changed: number
  readonly untracked: number
  /** Changed, but hidden by assume-unchanged, skip-worktree or timestamps. */
  readonly hidden: number
}

/** Places where another repository belongs; nobody has looked into those. */
export type WithGitlinks = { readonly gitlinks: readonly TreePath[] }

/** How much is uncommitted, for display. Without ignored files, which are most of the cost and no part of the answer. */
export const countChanges = async (
  git: Git,
  tree: Tree,
  { signal }: CallOptions = {},
): Promise<ChangeCounts & WithGitlinks> => {
  const request = { operation: 'status', at: tree, args, settings, ...(signal && { signal }) }
  const { stdoutBytes } = await git.run(request)
  const { changed, unmerged, untracked } = parseStatus(stdoutBytes)
  // Git is started for these only where a bit in the index hides something, or the index is of a rare kind.
  const scan = scanIndex(tree)
  const { hidden, gitlinks } =
    scan?.hasFlags === false
      ? { hidden: [], gitlinks: scan.gitlinks }
      : await readIndexState(git, tree, { signal }, scan)
  return { changed: changed.length + unmerged.length, untracked: untracked.length, hidden: hidden.length, gitlinks }
}

const args = [
  ...'status --porcelain=v2 -z --untracked-files=all --ignored=no'.split(' '),
  ...'--ignore-submodules=dirty --no-renames --no-ahead-behind'.split(' '),
]

/** Several of these run at once: threads of their own for reading the index (six, at 3,000 files) only get in the way. */
const settings: readonly Setting[] = [['core.preloadIndex', 'false']]
