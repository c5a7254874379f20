import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { toWork, type Work, type WorkType, workOfBranch } from '../../domain/work.ts'
import { hasControl } from './report.ts'

export type Evidence = {
  /** From the environments table; older versions had none. */
  readonly workflowType: string | undefined
  readonly workflowId: string | undefined
  readonly path: string
  readonly branch: string
  /** Platform IDs of the conversations that point at it. */
  readonly conversationIds: readonly string[]
}

/**
 * Infers the work of an Archon environment from the most reliable source: its own row, the number or hash in its
 * directory name, the conversation's number (`owner/repo#42`), the chat thread using it, its branch. The directory
 * beats the conversation because worktrees are shared: PR 99 works in `issue-42`.
 */
export const inferWork = (evidence: Evidence): Work =>
  fromRow(evidence) ?? fromPath(evidence) ?? fromConversations(evidence) ?? workOfBranch(evidence.branch)

const fromRow = ({ workflowType, workflowId = '' }: Evidence): Work | undefined => {
  switch (workflowType) {
    case 'issue':
    case 'pr':
    case 'review': {
      // '42', or 'pr-99' as in the schema's examples.
      const number = /^(?:(?:issue|pr|review)-|#)?([1-9][0-9]{0,9})(?:-review)?$/.exec(workflowId)?.[1]
      return number === undefined ? undefined : toWork(workflowType, number)
    }
    case 'thread':
    case 'task':
      return named(workflowType, workflowId)
    default:
      return undefined
  }
}

const fromPath = ({ path, conversationIds }: Evidence): Work | undefined => {
  const directory = basename(path)
  const [, type, number, review] = /^(issue|pr|review)-([1-9][0-9]{0,9})(-review)?$/.exec(directory) ?? []
  if (number !== undefined) return toWork(review === undefined ? (type as WorkType) : 'review', number)
  const hash = /^thread-([0-9a-f]{8})$/.exec(directory)?.[1]
  const thread = hash === undefined ? undefined : conversationIds.find((id) => shortHash(id) === hash)
  return thread === undefined ? undefined : named('thread', thread)
}

const fromConversations = ({ conversationIds, path, branch }: Evidence): Work | undefined => {
  const isPr = [basename(path), branch].some((name) => /(?:^|[/-])pr-/.test(name))
  for (const id of conversationIds) {
    const [, sign, number] = /^[^/\s]+\/[^#!\s]+([#!])([1-9][0-9]{0,9})$/.exec(id) ?? []
    // GitLab merge requests use `!`.
    if (number !== undefined) return toWork(isPr || sign === '!' ? 'pr' : 'issue', number)
  }
  const [first] = conversationIds
  return first === undefined ? undefined : named('thread', first)
}

const named = (type: 'thread' | 'task', id: string): Work | undefined =>
  id.trim() === '' || id.length > 500 || hasControl(id) ? undefined : toWork(type, id)

/** As in branch names, in Archon and here: the first 8 hex digits of sha256. */
const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
