import type { Sha } from '../names.ts'

/** What would be lost with a worktree's record: what only it or its submodules' git directories have. */
export type Unreachable =
  | { readonly kind: 'detached-head'; readonly commits: number }
  /** In a ref that only this worktree has. `commits` is undefined for non-commits. */
  | { readonly kind: 'own-ref'; readonly ref: string; readonly commits: number | undefined }
  /** In a clone's ref other than its branch, or an older stash; `source` is what git can fetch. */
  | {
      readonly kind: 'clone-ref'
      readonly ref: string
      readonly source: string
      readonly path: string
      readonly repository: string
    }
  | { readonly kind: 'more-clone-refs'; readonly count: number; readonly path: string; readonly repository: string }
  /** Worktrees that someone made from a clone, which holds git's record of them. */
  | { readonly kind: 'clone-worktrees'; readonly path: string; readonly worktrees: readonly SubmoduleWorktree[] }
  | UnpushedCommits
  /** Refs of a submodule that lead to no commit, such as a tag on a file. */
  | { readonly kind: 'submodule-refs'; readonly submodule: UnpushedSubmodule; readonly refs: readonly string[] }
  | {
      readonly kind: 'submodule-worktrees'
      readonly submodule: UnpushedSubmodule
      readonly worktrees: readonly SubmoduleWorktree[]
    }

export type UnpushedCommits = {
  readonly kind: 'submodule-commits'
  readonly submodule: UnpushedSubmodule
  readonly commits: number
  /** Pushing these pushes every commit, unless there are more than are listed. */
  readonly tips: readonly UnpushedTip[]
  readonly hasMoreTips: boolean
  /** Whether the remote listed its tags; undefined if that doesn't matter. */
  readonly askedForTags: 'answered' | 'no-answer' | undefined
}

export type UnpushedSubmodule = {
  readonly name: string
  readonly gitDir: string
  /** Git fails if it can't enter the directory that the configuration names. */
  readonly filesAreGone: boolean
  readonly remote: string | undefined
  /** A pushed branch gets a remote-tracking ref. Not so in a single-branch clone. */
  readonly tracksPushes: boolean
}

export type UnpushedTip =
  | { readonly at: 'head'; readonly sha: Sha }
  | { readonly at: 'ref'; readonly sha: Sha; readonly ref: string }
  /** `isFree`: the remote is known to have no tag of this name. */
  | { readonly at: 'tag'; readonly sha: Sha; readonly ref: string; readonly isFree: boolean }
  | { readonly at: 'stash' | 'reflog'; readonly sha: Sha }

export type SubmoduleWorktree = {
  /** Undefined if git's record of it is broken. */
  readonly path: string | undefined
  readonly isLocked: boolean
}
