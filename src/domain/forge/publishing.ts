/*
 * Code hosts and what is published there, as values. In: a remote's URL. Out: where it leads, what git logs in with
 * there, and what became of a push and its pull request.
 */
import type { Sha } from '../names.ts'
import type { Trust } from '../trust.ts'

/** Why a remote didn't take a push. */
export type Rejection =
  /** The branch has commits there that it doesn't have here. */
  'behind' | 'workflows' | 'secrets' | 'large-files' | 'lfs' | 'protected' | 'other'

export type PullRequest = {
  /** The code host's name, such as GitHub. */
  readonly forge: string
  readonly number: number
  readonly url: string
  readonly draft: boolean
}

/** What became of a pull request. */
export type PullRequestState =
  | { readonly number: number; readonly state: 'open' | 'closed' }
  | {
      readonly number: number
      readonly state: 'merged'
      readonly headSha: Sha
      readonly headBranch: string
      readonly mergeCommit: Sha
      readonly baseBranch: string
    }

export type NewPullRequest = {
  /** In the same repository. */
  readonly branch: string
  readonly base: string
  readonly title: string
  readonly body: string
  readonly draft: boolean
}

/** What became of a request to open a pull request. */
export type OpenedPullRequest =
  | { readonly outcome: 'opened' | 'exists'; readonly pullRequest: PullRequest }
  /** `permission`: our credentials lack one. `no-difference`: base has it all. `said`: the host's own words. */
  | {
      readonly outcome: 'refused'
      readonly forge: string
      readonly why: 'permission' | 'no-difference' | 'other'
      readonly said: string
    }
  | { readonly outcome: 'unreachable'; readonly forge: string; readonly said: string }
  /** The repository is on no code host that we have credentials for. */
  | { readonly outcome: 'no-forge' }

/** Why nothing was pushed. */
export type NotPublished =
  | { readonly kind: 'no-remote' }
  /** Nobody has proven or vouched for where its commits come from. */
  | { readonly kind: 'untrusted'; readonly trust: Trust }
  | { readonly kind: 'is-base'; readonly base: string }
  /** Another branch is checked out, or none. */
  | { readonly kind: 'other-branch'; readonly head: string | undefined }
  | { readonly kind: 'no-commits'; readonly base: string; readonly uncommitted: number }
  /** Not the address that the codebase was registered with: an agent can change it. */
  | { readonly kind: 'remote-changed'; readonly from: string; readonly to: string }
  /** Added since the codebase was registered: an agent can do that. `repository`: its path. */
  | {
      readonly kind: 'remote-unconfirmed'
      readonly remote: string
      readonly url: string
      readonly repository: string
    }
  /** None of them is the one to push to. */
  | { readonly kind: 'remote-ambiguous'; readonly remotes: readonly string[] }
  /** `fetched`: what the branch has on the remote can be merged in the worktree. */
  | { readonly kind: 'rejected'; readonly why: Rejection; readonly said: string; readonly fetched: boolean }
  | { readonly kind: 'no-access' | 'unreachable'; readonly said: string }
  /** The remote accepted the push, but now has something else. */
  | { readonly kind: 'not-there'; readonly branch: string; readonly found: Sha | undefined }
