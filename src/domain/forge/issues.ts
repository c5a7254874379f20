/*
 * Issues on a code host. In: a query, or an issue to close. Out: issues, the result of closing one, or why there is no
 * answer.
 */

export type ForgeIssue = {
  readonly number: number
  readonly title: string
  /** As people see it, without HTML comments. */
  readonly body: string
  readonly labels: readonly string[]
  readonly open: boolean
}

export const issueStates = ['open', 'closed', 'all'] as const
export type IssueStateFilter = (typeof issueStates)[number]

export type IssueQuery = {
  /** An issue must have all of them. */
  readonly labels: readonly string[]
  readonly state: IssueStateFilter
  /** Only this many, oldest first. */
  readonly limit: number | undefined
}

export type FoundIssues =
  | {
      readonly outcome: 'found'
      /** `owner/name` */
      readonly repository: string
      /** Oldest first; never a pull request. */
      readonly issues: readonly ForgeIssue[]
      /** There are more than the limit. */
      readonly more: boolean
    }
  | ForgeProblem

/** The requested issues. A number without an issue doesn't exist there. */
export type NumberedIssues =
  | { readonly outcome: 'found'; readonly issues: readonly ForgeIssue[]; readonly problem?: ForgeProblem }
  | ForgeProblem

export type ClosedIssue = { readonly outcome: 'closed' | 'closed-already' } | ForgeProblem

export type ForgeProblem =
  /** `anonymous`: without credentials, so private repositories can't be seen. `said`: the host's own words. */
  | {
      readonly outcome: 'refused'
      readonly forge: string
      readonly why: 'permission' | 'not-found' | 'other'
      readonly anonymous: boolean
      readonly said: string
    }
  | { readonly outcome: 'unreachable'; readonly forge: string; readonly said: string }
  /** `until`: when to try again. */
  | { readonly outcome: 'limited'; readonly forge: string; readonly anonymous: boolean; readonly until: number }
  /** The repository isn't on a known code host. */
  | { readonly outcome: 'no-forge' }
