import { isNumbered, parseWorkRef, type Work, type WorkType } from './work.ts'

/** What a platform tells the resolver. Platforms only give hints. */
export type IsolationHints = {
  workflowType?: WorkType
  workflowId?: string
  prBranch?: string
  prSha?: string
  /** Only an explicit `false` proves that head and base are in the same repository: undefined is *unknown*. */
  isForkPR?: boolean
  linkedIssues?: readonly number[]
  linkedPRs?: readonly number[]
  suggestedBranch?: string
}

/** The issue or pull request that a message is about. */
export const numberedWork = ({ workflowType, workflowId }: IsolationHints = {}): Work | undefined =>
  workflowType === undefined || workflowId === undefined || !isNumbered(workflowType)
    ? undefined
    : parseWorkRef(`${workflowType}:${workflowId}`)
