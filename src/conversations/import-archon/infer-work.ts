import { basename } from 'node:path'
import { branchNameProblem } from '../../domain/names.ts'
import { isNumbered, sameWork, taskWork, toWork, type Work, type WorkType, workOfBranch } from '../../domain/work.ts'
import { archonNames, shortHash, withoutPrefix } from './archon-names.ts'
import { hasControl } from './report.ts'

export type Evidence = {
  /** From the environments table, oldest first; older versions had none. */
  readonly rows: readonly RowEvidence[]
  readonly path: string
  readonly branch: string
  /** The conversations that point at it. */
  readonly conversations: readonly ConversationEvidence[]
}

export type RowEvidence = {
  readonly workflowType: string | undefined
  readonly workflowId: string | undefined
  readonly branch: string | undefined
}

export type ConversationEvidence = { readonly platform: string | undefined; readonly id: string }

export type Identities = {
  readonly work: Work
  /** What else the same worktree was used for, and other names for it. */
  readonly aliases: readonly Work[]
}

/**
 * Infers what an Archon worktree is for from the most reliable source: its own rows, the number or hash in its
 * directory name, the conversation's number (`owner/repo#42`), the chat thread using it, its branch. If there are
 * several rows, the directory's name chooses. The directory also beats the conversations, because worktrees are shared:
 * PR 99 works in `issue-42`. Everything else it was used for becomes an alias.
 */
export const inferWorks = (evidence: Evidence): Identities => {
  const directory = basename(evidence.path)
  const byRows = evidence.rows.flatMap((row) => workOfRow(row, directory) ?? [])
  const byDirectory = fromPath(evidence)
  const byConversations = fromConversations(evidence)
  const named = byRows.find((work) => archonNames(work).includes(directory))
  const work = named ?? byRows[0] ?? byDirectory ?? byConversations[0] ?? workOfBranch(evidence.branch)
  const certain = [...byRows, ...(byDirectory === undefined ? [] : [byDirectory])]
  const conversed = byConversations.filter((other) => !isSameNumber(other, certain))
  const others = [...certain, ...conversed, ...taskNames(evidence, [work, ...certain])]
  return { work, aliases: distinct(others).filter((other) => !sameWork(other, work)) }
}

const distinct = (works: readonly Work[]): Work[] =>
  works.filter((work, i) => works.findIndex((other) => sameWork(other, work)) === i)

/** Issues and pull requests share their numbers: if #42 is known to be an issue, it is no pull request. */
const isSameNumber = ({ type, id }: Work, certain: readonly Work[]): boolean =>
  (type === 'issue' || type === 'pr') && certain.some((other) => other.id === id && isNumbered(other.type))

/** What a row says it is for; undefined if that can't be. */
export const workOfRow = ({ workflowType, workflowId = '' }: RowEvidence, directory: string): Work | undefined => {
  switch (workflowType) {
    case 'issue':
    case 'pr':
    case 'review': {
      // '42', or 'pr-99' as in the schema's examples.
      const number = /^(?:(?:issue|pr|review)-|#)?([1-9][0-9]{0,9})(?:-review)?$/.exec(workflowId)?.[1]
      return number === undefined ? undefined : toWork(workflowType, number)
    }
    case 'thread':
      return named('thread', workflowId)
    case 'task': {
      // `/worktree create dark` recorded `task-dark`; from the command line it recorded what was typed.
      const typed = named('task', workflowId.replace(/^task-/, ''))
      return typed !== undefined && archonNames(typed).includes(directory) ? typed : named('task', workflowId)
    }
    default:
      return undefined
  }
}

const fromPath = ({ path, conversations }: Evidence): Work | undefined => {
  const directory = basename(path)
  const [, type, number, review] = /^(issue|pr|review)-([1-9][0-9]{0,9})(-review)?$/.exec(directory) ?? []
  if (number !== undefined) return toWork(review === undefined ? (type as WorkType) : 'review', number)
  const task = /^task-(.+)$/.exec(directory)?.[1]
  if (task !== undefined) return named('task', task)
  const hash = /^thread-([0-9a-f]{8})$/.exec(directory)?.[1]
  const thread = hash === undefined ? undefined : conversations.find(({ id }) => shortHash(id) === hash)
  return thread === undefined ? undefined : named('thread', thread.id)
}

/** Numbered ones first, then the chat threads. */
const fromConversations = ({ conversations, path, branch }: Evidence): Work[] => {
  const isPr = [basename(path), branch].some((name) => /(?:^|[/-])pr-/.test(name))
  const numbered = conversations.flatMap(({ platform, id }) => {
    const [, sign, number] = /^[^/\s]+\/[^#!\s]+([#!])([1-9][0-9]{0,9})$/.exec(id) ?? []
    if (number === undefined) return []
    // GitLab and Gitea write `!` for a merge request. On GitHub, the ID doesn't say which of the two it is.
    const likely = isPr || sign === '!' ? ('pr' as const) : ('issue' as const)
    const other = likely === 'pr' ? ('issue' as const) : ('pr' as const)
    return platform === 'github' ? [toWork(likely, number), toWork(other, number)] : [toWork(likely, number)]
  })
  const threads = conversations.flatMap(({ id }) =>
    /^[^/\s]+\/[^#!\s]+[#!]\d+$/.test(id) ? [] : (named('thread', id) ?? []),
  )
  return [...numbered, ...threads]
}

/** The names that a user knows it by: what was typed, its slug, and branches without Archon's prefixes. */
const taskNames = ({ rows, branch }: Evidence, works: readonly Work[]): Work[] => {
  const typed = works.filter(({ type }) => type === 'task').map(({ id }) => id)
  const branches = [branch, ...rows.flatMap((row) => row.branch ?? [])]
  const names = [...typed, ...branches, ...branches.map(withoutPrefix)].flatMap((name) => [
    name,
    name.replace(/^task-/, ''),
  ])
  // The branch itself is found anyway.
  const usable = names.filter((name) => name !== branch && branchNameProblem(name) === undefined)
  return [...usable.flatMap((name) => named('task', name) ?? []), ...typed.map(taskWork)]
}

const named = (type: 'thread' | 'task', id: string): Work | undefined =>
  id.trim() === '' || id.length > 500 || hasControl(id) ? undefined : toWork(type, id)
