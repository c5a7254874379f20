/*
 * Issues of beads (github.com/steveyegge/beads), and what they become here. In: all issues of a store. Out: items, and
 * where each issue stands.
 */
import type { ParkReason, Phase, Priority } from '../item.ts'

export type BeadsIssue = {
  /** In the file, for messages. */
  readonly line: number
  readonly id: string
  readonly title: string
  readonly body: string
  readonly status: string
  readonly priority: Priority
  readonly type: string
  readonly deleted: boolean
  /** No work: a template, or something that beads itself throws away or keeps forever. */
  readonly aside: boolean
  /** Hidden from beads' own list of ready work until then. */
  readonly deferredUntil: number | undefined
  readonly createdAt: number
  readonly dependencies: readonly BeadsDependency[]
}

export type BeadsDependency = {
  readonly on: string
  readonly type: string
  /** Of `waits-for`: one child that is done is enough. */
  readonly anyChild: boolean
}

/** `aside`: it never becomes an item. */
export type IssueKind = 'deleted' | 'closed' | 'aside' | 'live'

export const issueKind = ({ deleted, status, aside, type }: BeadsIssue): IssueKind => {
  if (deleted || status === 'tombstone') return 'deleted'
  if (status === 'closed') return 'closed'
  return aside || status === 'pinned' || notWork.has(type) ? 'aside' : 'live'
}

/** The types that `bd ready` never lists, and those that stand for something that has happened. */
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

/** Why nobody may start with it here, as far as its own status says. */
export const ownParkReason = (
  issue: BeadsIssue,
  parents: readonly BeadsIssue[],
  now: number,
): ParkReason | undefined => {
  const isHidden = isDeferred(issue, now) || parents.some((parent) => isDeferred(parent, now))
  const status = issue.status === 'open' && isHidden ? 'deferred' : issue.status
  return status === 'open' ? undefined : { kind: 'status-elsewhere', source: 'beads', status }
}

/** Where a live one stands there. */
export const phaseThere = (parked: ParkReason | undefined): Phase => {
  if (parked === undefined) return 'ready'
  const isClaimed =
    parked.kind === 'status-elsewhere' && (parked.status === 'in_progress' || parked.status === 'hooked')
  return isClaimed ? 'working' : 'waiting'
}
