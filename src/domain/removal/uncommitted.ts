/** Why a worktree isn't clean, in numbers. */
export type UncommittedWork = {
  readonly changed: number
  readonly untracked: number
  /** Changed, but hidden by assume-unchanged, skip-worktree or timestamps. */
  readonly hidden: number
  /** Half-done git operations: merge, rebase, … */
  readonly halfDone: readonly string[]
  /** How many submodules have changes, or are repositories with work that only they have. */
  readonly submodules: number
  /** How many submodules have unpushed commits. */
  readonly unpushed: number
}

export const isClean = ({ changed, untracked, hidden, halfDone, submodules, unpushed }: UncommittedWork): boolean =>
  changed + untracked + hidden + halfDone.length + submodules + unpushed === 0
