/*
 * Issues of beads (github.com/steveyegge/beads). In: an issue. Out: whether it becomes an item, why it is parked, and
 * its phase.
 */
import type { ParkReason, Phase, Priority } from '../item.ts'

export type BeadsIssue = {
  /** Its line in the file, for messages. */
  readonly line: number
  readonly id: string
  readonly title: string
  readonly body: string
  readonly status: string
  readonly priority: Priority
  readonly type: string
  readonly deleted: boolean
  /** Not a task: a template, or an ephemeral or pinned issue. */
  readonly aside: boolean
  /** beads doesn't list it as ready before this time. */
  readonly deferredUntil: number | undefined
  readonly createdAt: number
  readonly dependencies: readonly BeadsDependency[]
}

export type BeadsDependency = {
  readonly on: string
  readonly type: string
  /** For `waits-for`: satisfied once any child is done. */
  readonly anyChild: boolean
}

/** `aside`: it never becomes an item. */
export type IssueKind = 'deleted' | 'closed' | 'aside' | 'live'

export const issueKind = ({ deleted, status, aside, type }: BeadsIssue): IssueKind => {
  if (deleted || status === 'tombstone') return 'deleted'
  if (status === 'closed') return 'closed'
  return aside || status === 'pinned' || notWork.has(type) ? 'aside' : 'live'
}

/** Types that `bd ready` never lists, and types that record events. */
const notWork: ReadonlySet<string> = new Set([
  'agent',
  'event',
  'gate',
  'merge-request',
  'message',
  'molecule',
  'rig',
  'role',
])

const isDeferred = ({ status, deferredUntil }: BeadsIssue, now: number): boolean =>
  status === 'deferred' || (deferredUntil !== undefined && deferredUntil > now)

/** Why the item is parked, judging by the status of the issue and its parents. */
export const ownParkReason = (
  issue: BeadsIssue,
  parents: readonly BeadsIssue[],
  now: number,
): ParkReason | undefined => {
  const isHidden = isDeferred(issue, now) || parents.some((parent) => isDeferred(parent, now))
  const status = issue.status === 'open' && isHidden ? 'deferred' : issue.status
  return status === 'open' ? undefined : { kind: 'status-elsewhere', source: 'beads', status }
}

/** The phase of a live issue. */
export const phaseThere = (parked: ParkReason | undefined): Phase => {
  if (parked === undefined) return 'ready'
  const isClaimed =
    parked.kind === 'status-elsewhere' && (parked.status === 'in_progress' || parked.status === 'hooked')
  return isClaimed ? 'working' : 'waiting'
}
