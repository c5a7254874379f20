import type { WorkType } from './work.ts'

/** What a platform knows and the resolver needs. Platforms give hints and nothing else. */
export type IsolationHints = {
  workflowType?: WorkType
  workflowId?: string
  prBranch?: string
  prSha?: string
  /** Only an explicit `false` proves that head and base are the same repository: undefined is *unknown*. */
  isForkPR?: boolean
  linkedIssues?: readonly number[]
  linkedPRs?: readonly number[]
  suggestedBranch?: string
}
