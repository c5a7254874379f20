import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { BoundedMap } from '../domain/bounded-map.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { type IndexState, readIndexState } from './hidden.ts'
import { scanIndex } from './index-scan.ts'
import { freshMs, wallClock } from './inspect.ts'
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
  const { hidden, gitlinks } = await hiddenAndGitlinks(git, tree, { signal })
  return { changed: changed.length + unmerged.length, untracked: untracked.length, hidden: hidden.length, gitlinks }
}

/** Starts git for these only if an index flag hides something, or the index format is unusual. */
const hiddenAndGitlinks = async (
  git: Git,
  tree: Tree,
  options: CallOptions,
): Promise<Pick<IndexState, 'hidden' | 'gitlinks'>> => {
  const stamp = indexStamp(tree)
  const known = scanned.get(tree.gitDir)
  if (stamp !== undefined && known?.stamp === stamp) return { hidden: [], gitlinks: known.gitlinks }
  const scan = scanIndex(tree)
  if (scan?.hasFlags !== false) return readIndexState(git, tree, options, scan)
  const { gitlinks } = scan
  if (stamp !== undefined) scanned.set(tree.gitDir, { stamp, gitlinks })
  return { hidden: [], gitlinks }
}

/** Indexes without flags: git replaces the file when it changes one. Reading 50 of them again is 5 % of a list. */
const scanned = new BoundedMap<string, { readonly stamp: string } & WithGitlinks>(1_000)

/** Undefined if it changed just now: two changes within one tick of the kernel's clock look like one. */
const indexStamp = ({ gitDir }: Tree): string | undefined => {
  const stat = unlessMissingSync(() => lstatSync(join(gitDir, 'index'), { bigint: true, throwIfNoEntry: false }))
  if (stat === undefined || wallClock() - Number(stat.ctimeMs) < freshMs) return undefined
  return `${stat.dev}:${stat.ino}:${stat.size}:${stat.ctimeNs}`
}

const args = [
  ...'status --porcelain=v2 -z --untracked-files=all --ignored=no'.split(' '),
  ...'--ignore-submodules=dirty --no-renames --no-ahead-behind'.split(' '),
]

/** Several of these run at once, and git's own threads for reading the index (six, for 3,000 files) slow them down. */
const settings: readonly Setting[] = [['core.preloadIndex', 'false']]
