import type { Sha } from './names.ts'

/** How we know that a branch was merged, cheapest first. The answer always names its proof. */
export type MergeProof =
  | 'ancestor' // its tip is in base's history, and it had its own commits
  | 'same-tree' // base has exactly the same content
  | 'merge-changes-nothing' // merging it into base would change nothing
  | 'squash' // its whole patch is in base under another commit
  | 'forge' // the forge reports it merged, with this tip as head

/**
 * `base`: its name for display. `commit`: the squash, or the tip that the forge merged. `pullRequest`: the one in which
 * the forge merged it.
 */
export type Proven =
  | { readonly proof: Exclude<MergeProof, 'forge'>; readonly base: string; readonly commit?: Sha }
  | {
      readonly proof: 'forge'
      readonly base: string
      readonly commit: Sha
      readonly pullRequest: Pick<MergedPullRequest, 'forge' | 'number'>
    }

/** A pull request that its forge reports as merged. That never changes. */
export type MergedPullRequest = {
  /** For display: `GitHub`. */
  readonly forge: string
  /** Where it was merged: `owner/name`. */
  readonly repository: string
  readonly number: number
  /** Its head when it was merged. */
  readonly headSha: Sha
  /** What the merge added to the base branch: a merge commit, the squash, or the last of the rebased commits. */
  readonly mergeCommit: Sha
  /** The branch it was merged into. */
  readonly baseBranch: string
}

export type Merged =
  | ({ readonly value: 'yes' } & Proven)
  | { readonly value: 'no'; readonly own: number }
  /** No commits beyond base: nothing to merge or lose. Not the same as merged. */
  | { readonly value: 'empty' }
  | { readonly value: 'cannot-tell'; readonly why: MergeDoubt }

/** Why we can't tell if a branch is merged. */
export type MergeDoubt =
  | StaleBase
  | { readonly kind: 'not-asked' }
  | { readonly kind: 'own-base'; readonly base: string }
  | { readonly kind: 'branch-gone'; readonly branch: string }
  /** Base exists for another reason than a merge into it. */
  | { readonly kind: 'base-of-worktree' | 'base-without-reflog' | 'base-untouched'; readonly base: string }
  | { readonly kind: 'base-created-from-it' | 'base-reflog-too-short'; readonly base: string }
  | { readonly kind: 'reflog-unreadable'; readonly branch: string; readonly message: string }
  | { readonly kind: 'commits-of-others' | 'reflog-silent'; readonly branch: string }
  | { readonly kind: 'failed'; readonly message: string }

/** Why base can't prove anything merged. `base` is its name for display. */
export type StaleBase =
  | { readonly kind: 'remote-not-fetched'; readonly remote: string }
  | { readonly kind: 'base-not-local' | 'base-not-remote' | 'base-of-no-remote'; readonly base: string }
  | { readonly kind: 'base-gone'; readonly remote: string; readonly branch: string }
  | { readonly kind: 'other-default-branch'; readonly remote: string; readonly head: string; readonly branch: string }
  | { readonly kind: 'base-moved' | 'base-not-asked'; readonly remote: string; readonly base: string }
