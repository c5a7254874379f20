import type { Sha } from '../names.ts'
import { counted } from '../words.ts'

/** What would be lost with a worktree's record: what only it or the git directories of its submodules have. */
export type Unreachable =
  | { readonly kind: 'detached-head'; readonly commits: number }
  /** In a ref that only this worktree has. `commits` is undefined for what is not a commit. */
  | { readonly kind: 'own-ref'; readonly ref: string; readonly commits: number | undefined }
  /** In a ref of a clone beside its branch, or an older stash; `source` is what git can fetch it by. */
  | {
      readonly kind: 'clone-ref'
      readonly ref: string
      readonly source: string
      readonly path: string
      readonly repository: string
    }
  | { readonly kind: 'more-clone-refs'; readonly count: number; readonly path: string; readonly repository: string }
  /** Worktrees that somebody made from a clone: git keeps its record of them there. */
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
  /** Pushing these pushes every commit, unless there are more of them than are listed. */
  readonly tips: readonly UnpushedTip[]
  readonly hasMoreTips: boolean
  /** Whether the remote said which tags it has; undefined where the answer would not matter. */
  readonly askedForTags: 'answered' | 'no-answer' | undefined
}

export type UnpushedSubmodule = {
  readonly name: string
  readonly gitDir: string
  /** Git fails where it cannot enter the directory that the configuration names. */
  readonly filesAreGone: boolean
  readonly remote: string | undefined
  /** A branch that is pushed gets a remote-tracking ref. Not so in a clone of a single branch. */
  readonly tracksPushes: boolean
}

export type UnpushedTip =
  | { readonly at: 'head'; readonly sha: Sha }
  | { readonly at: 'ref'; readonly sha: Sha; readonly ref: string }
  /** `isFree`: the remote is known to have no tag of this name. */
  | { readonly at: 'tag'; readonly sha: Sha; readonly ref: string; readonly isFree: boolean }
  | { readonly at: 'stash' | 'reflog'; readonly sha: Sha }

export type SubmoduleWorktree = {
  /** Undefined where git's record of it is broken. */
  readonly path: string | undefined
  readonly isLocked: boolean
}

export const describeUnreachable = (lost: Unreachable): string => {
  switch (lost.kind) {
    case 'detached-head':
      return `${counted(lost.commits, 'commit')} on a detached HEAD that no branch has`
    case 'own-ref':
      return lost.commits === undefined
        ? `${lost.ref} holds an object that no tag has`
        : `${counted(lost.commits, 'commit')} in ${lost.ref} that no branch has`
    case 'clone-ref':
      return lost.ref === 'refs/stash'
        ? 'a stash that only this clone has'
        : lost.ref.startsWith('refs/')
          ? `${lost.ref} holds what only this clone has`
          : `an older stash that only this clone has: ${lost.ref}`
    case 'more-clone-refs':
      return `and ${counted(lost.count, 'more ref')} ${lost.count === 1 ? 'holds' : 'hold'} what only this clone has`
    case 'submodule-commits':
      return describeCommits(lost)
    case 'submodule-refs': {
      const { refs, submodule } = lost
      if (refs.length === 1) return `${refs.join()} in submodule ${submodule.name} was not pushed`
      const more = refs.length > 3 ? ', …' : ''
      return `${refs.length} refs in submodule ${submodule.name} were not pushed: ${refs.slice(0, 3).join(', ')}${more}`
    }
    case 'clone-worktrees':
      return `${counted(lost.worktrees.length, 'worktree')} made from this clone`
    case 'submodule-worktrees':
      return `submodule ${lost.submodule.name} has worktrees of its own`
  }
}

const describeCommits = ({
  commits,
  submodule: { name },
  tips,
  hasMoreTips,
  askedForTags,
}: UnpushedCommits): string => {
  const count = counted(commits, 'commit')
  const areAll = (at: UnpushedTip['at']): boolean => !hasMoreTips && tips.every((tip) => tip.at === at)
  const unasked = askedForTags === 'no-answer' ? ' (its remote did not answer without credentials)' : ''
  if (areAll('tag')) return `${count} that only tags in submodule ${name} have${unasked}`
  if (areAll('stash')) return `${count} that only the stash of submodule ${name} has`
  if (areAll('reflog')) return `${count} that only the reflog of submodule ${name} has`
  return `${count} in submodule ${name} that no remote has${unasked}`
}
