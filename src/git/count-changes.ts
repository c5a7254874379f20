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

/** Paths of submodules, which were not examined. */
export type WithGitlinks = { readonly gitlinks: readonly TreePath[] }

/** Counts uncommitted changes, for display. Skips ignored files, which cost the most time and don't count. */
export const countChanges = async (
  git: Git,
  tree: Tree,
  { signal }: CallOptions = {},
): Promise<ChangeCounts & WithGitlinks> => {
  const request = { operation: 'status', at: tree, args, settings, ...(signal && { signal }) }
  const { stdoutBytes } = await git.run(request)
  const { changed, unmerged, untracked } = parseStatus(stdoutBytes)
  // Starts git for these only if an index flag hides something, or the index format is unusual.
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

/** Several of these run at once, and git's own threads for reading the index (six, for 3,000 files) slow them down. */
const settings: readonly Setting[] = [['core.preloadIndex', 'false']]
