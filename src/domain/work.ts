import { createHash } from 'node:crypto'
import { AppError } from './errors.ts'
import { type BranchName, toBranchName } from './names.ts'

export const workTypes = ['issue', 'pr', 'review', 'thread', 'task', 'agent'] as const
export type WorkType = (typeof workTypes)[number]

/** Identifies what is being worked on. The same work has the same environment on every platform. */
export type Work = { readonly type: WorkType; readonly id: string }

export const sameWork = (a: Work, b: Work): boolean => a.type === b.type && a.id === b.id

const numbered: ReadonlySet<WorkType> = new Set(['issue', 'pr', 'review'])
export const isNumbered = (type: WorkType): boolean => numbered.has(type)

export const isAboutPullRequest = ({ type }: Work): boolean => type === 'pr' || type === 'review'

/** The only way to create a work, so `issue 042`, an empty task or a NUL never becomes an identity. */
export const toWork = (type: WorkType, id: string): Work => {
  if (isNumbered(type)) {
    if (!/^[1-9][0-9]{0,9}$/.test(id)) {
      throw new AppError('name-invalid', `${JSON.stringify(id.slice(0, 40))} isn't ${article(type)} ${type} number`, {
        remedy: `use a positive number, such as 42`,
      })
    }
    return { type, id }
  }
  if (id.trim() === '' || id.length > 500 || id.includes('\0')) {
    throw new AppError('name-invalid', `${article(type)} ${type} needs an id of 1 to 500 characters`)
  }
  if (type === 'agent' && !/^[a-z0-9][a-z0-9-]{0,49}$/.test(id)) {
    throw new AppError('name-invalid', `${JSON.stringify(id.slice(0, 60))} isn't a valid agent name`, {
      remedy: 'use lower-case letters, digits and "-"',
    })
  }
  return { type, id }
}

const article = (type: WorkType): string => (type === 'issue' || type === 'agent' ? 'an' : 'a')

/** A task's id is the slug of its text. */
export const taskWork = (text: string): Work => toWork('task', slug(text))

const slugLimit = 50

/**
 * A slug that is empty (a title in Japanese, an emoji) or truncated gets a short hash of the full text,
 * so two works never collide by accident.
 */
export const slug = (text: string): string => {
  const full = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/g, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  // Letters were dropped, not merely folded: two titles that differ only in those must not collide.
  const dropped = /[^\p{ASCII}\p{M}\p{P}\p{Z}]/u.test(text.normalize('NFKD'))
  if (full !== '' && full.length <= slugLimit && !dropped) return full
  const cut = full.slice(0, slugLimit).replace(/-$/, '')
  return cut === '' ? shortHash(text) : `${cut}-${shortHash(text)}`
}

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** `now` is only used for agents, whose branches end in a base36 time. */
export const branchForWork = (work: Work, now: number): BranchName => {
  switch (work.type) {
    case 'issue':
      return toBranchName(`issue-${work.id}`)
    case 'pr':
      return toBranchName(`pr-${work.id}`)
    case 'review':
      return toBranchName(`pr-${work.id}-review`)
    case 'thread':
      return toBranchName(`thread-${shortHash(work.id)}`)
    case 'task':
      return toBranchName(`task-${work.id}`)
    case 'agent':
      return toBranchName(`agent/${work.id}-${now.toString(36)}`)
  }
}

/** A work for display: `issue #42`, `PR #99`, `task add-dark-mode`. */
export const workLabel = (work: Work): string => {
  switch (work.type) {
    case 'issue':
      return `issue #${work.id}`
    case 'pr':
      return `PR #${work.id}`
    case 'review':
      return `review of PR #${work.id}`
    case 'thread':
      return `thread ${work.id}`
    case 'task':
      return `task ${work.id}`
    case 'agent':
      return `agent ${work.id}`
  }
}

/** Parses a reference such as `issue-42`, `pr-99` or `task-add-dark-mode`; undefined if it isn't one. */
export const parseWorkRef = (text: string): Work | undefined => {
  // A review's branch is named after its PR.
  const review = /^pr-([1-9][0-9]{0,9})-review$/.exec(text)
  if (review?.[1] !== undefined) return { type: 'review', id: review[1] }
  const match = /^(issue|pr|review|thread|task|agent)[-:#](.+)$/s.exec(text)
  if (!match) return undefined
  const [, type, id] = match
  try {
    return toWork(type as WorkType, id ?? '')
  } catch {
    return undefined
  }
}

/**
 * For an environment whose own work is found elsewhere now: the task named after its branch, as `worktree create
 * <branch>` names it. The second is free even if a task with that name lives on another branch.
 */
export const tasksOfBranch = (branch: BranchName, environmentId: string): readonly [Work, Work] => [
  toWork('task', branch),
  toWork('task', `${branch}-${environmentId.slice(0, 8)}`),
]

/** The work that a branch of ours is named after; any other branch is the work `task:<branch>`. */
export const workOfBranch = (branch: string): Work => {
  const review = /^pr-([1-9]\d*)-review$/.exec(branch)
  if (review) return toWork('review', review[1]!)
  const numbered = /^(issue|pr)-[1-9]\d*$/.test(branch) ? parseWorkRef(branch) : undefined
  return numbered ?? toWork('task', branch.replace(/^task-/, ''))
}
