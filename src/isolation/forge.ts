import type { Codebase } from '../domain/environment.ts'
import type { ClosedIssue, FoundIssues, IssueQuery, NumberedIssues } from '../domain/forge/issues.ts'
import type { FindLogin } from '../domain/forge/login.ts'
import type { MergedPullRequest } from '../domain/merge-proof.ts'
import type { Sha } from '../domain/names.ts'
import type { NewPullRequest, OpenedPullRequest, PullRequestState } from '../domain/forge/publishing.ts'

/** The code host. */
export type Forge = {
  /** What git logs in with there. */
  readonly login: FindLogin
  /** The host's name for the repository at this URL, such as `owner/name`, if it is there. */
  repositoryAt(remoteUrl: string): Promise<string | undefined>
  /** Few requests for any number of questions, and none for a repository that isn't there. */
  mergedPullRequests(
    codebase: Codebase,
    questions: readonly ForgeQuestion[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ForgeAnswer>
  /** Whether they are open, merged or closed. One without a clear answer is left out. Throws only if cancelled. */
  pullRequestStates(
    codebase: Codebase,
    numbers: readonly number[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<PullRequestStates>
  /** Opens a pull request from a branch that was pushed, unless one is open from it. Throws only if cancelled. */
  openPullRequest(
    codebase: Codebase,
    wanted: NewPullRequest,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<OpenedPullRequest>
  /** All issues that the query asks for, never pull requests. Also without credentials. Throws only if cancelled. */
  issues(
    codebase: Codebase,
    query: IssueQuery,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<FoundIssues>
  /** A request for each. Throws only if cancelled. */
  issuesNumbered(
    codebase: Codebase,
    numbers: readonly number[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<NumberedIssues>
  /** Closes an issue as completed, after a comment. Doing it again changes nothing. Throws only if cancelled. */
  closeIssue(
    codebase: Codebase,
    number: number,
    /** `id`: recognises the comment when it is done again. */
    comment: { readonly text: string; readonly id: string },
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ClosedIssue>
}

export type PullRequestStates = {
  readonly found: readonly PullRequestState[]
  /** Why some have no answer. */
  readonly problem?: { readonly forge: string; readonly message: string }
}

export type ForgeQuestion = {
  readonly tip: Sha
  /** Branches of the repository that a pull request of this work may come from. */
  readonly branches: readonly string[]
  /** Pull requests known to be about this work, wherever they come from. */
  readonly numbers: readonly number[]
}

export type ForgeAnswer = {
  /** Only those with one of the tips as head. */
  readonly merged: readonly MergedPullRequest[]
  /** Why some questions have no answer. */
  readonly problem?: { readonly forge: string; readonly message: string }
}
