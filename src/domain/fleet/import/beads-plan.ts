/*
 * Plans an import from beads. In: all issues of a store or export. Out: items with their dependencies, and each issue's
 * phase. docs/decisions/0034-items-from-elsewhere.md says why.
 */
import { type ParkReason, sourceKey } from '../item.ts'
import { type BeadsIssue, ownParkReason, phaseThere, type IssueKind, issueKind } from './beads-issue.ts'
import { inOrder } from './order.ts'
import type { There } from './sync-states.ts'
import type { WantedItem } from './wanted.ts'

export type BeadsPlan = {
  /** Oldest first. */
  readonly wanted: readonly WantedItem[]
  readonly there: ReadonlyMap<string, There>
  readonly leftOut: Readonly<Record<Exclude<IssueKind, 'live'>, number>>
}

export type BeadsProblem =
  /** Issues that are parents of each other. */
  | { readonly kind: 'circle'; readonly ids: readonly string[] }
  | { readonly kind: 'waits-for-too-many'; readonly issue: BeadsIssue; readonly limit: number }

/** The maximum in the agent file, which stores an item's dependencies. */
const MOST_AFTER = 1_000

export const planBeads = (
  issues: readonly BeadsIssue[],
  now: number,
): BeadsPlan | { readonly problem: BeadsProblem } => {
  const graph = graphOf(issues)
  const waits = waitsOf(graph)
  if ('problem' in waits) return waits
  const wanted: WantedItem[] = []
  const there = new Map<string, There>()
  const leftOut = { deleted: 0, closed: 0, aside: 0 }
  for (const issue of issues.toSorted(byAge)) {
    const kind = issueKind(issue)
    if (kind !== 'live') {
      leftOut[kind] += 1
      there.set(issue.id, kind === 'closed' ? 'done' : 'gone')
      continue
    }
    const { after, outside } = waits.of.get(issue.id) ?? nothing
    const own = ownParkReason(issue, graph.parents(issue), now)
    const parked: ParkReason | undefined =
      own ?? (outside.length === 0 ? undefined : { kind: 'waits-elsewhere', source: 'beads', ids: outside })
    const phase = phaseThere(parked)
    there.set(issue.id, phase)
    const { id, title, body, priority } = issue
    const keys = after.map((one) => sourceKey({ kind: 'beads', id: one }))
    wanted.push({ source: { kind: 'beads', id }, title, body, priority, after: keys, parked, there: phase })
  }
  return { wanted, there, leftOut }
}

const byAge = (a: BeadsIssue, b: BeadsIssue): number => a.createdAt - b.createdAt || a.line - b.line

type Waits = {
  /** Dependencies that are items. */
  readonly after: readonly string[]
  /** Dependencies that aren't items (unknown, in another store, not a task), so it is unknown whether they are done. */
  readonly outside: readonly string[]
}

const nothing: Waits = { after: [], outside: [] }

type Graph = {
  readonly issues: readonly BeadsIssue[]
  readonly byId: ReadonlyMap<string, BeadsIssue>
  readonly parents: (issue: BeadsIssue) => readonly BeadsIssue[]
  readonly children: (id: string) => readonly BeadsIssue[]
}

const graphOf = (issues: readonly BeadsIssue[]): Graph => {
  const byId = new Map(issues.map((issue) => [issue.id, issue]))
  const parents = ({ dependencies }: BeadsIssue): readonly BeadsIssue[] =>
    dependencies.flatMap(({ on, type }) => (type === 'parent-child' ? (byId.get(on) ?? []) : []))
  const children = new Map<string, BeadsIssue[]>()
  for (const issue of issues) {
    for (const { id } of parents(issue)) {
      const known = children.get(id)
      if (known === undefined) children.set(id, [issue])
      else known.push(issue)
    }
  }
  return { issues, byId, parents, children: (id) => children.get(id) ?? [] }
}

/**
 * As in `bd ready`, an issue waits for its own blockers and for the open blockers of its parents. In addition, an epic
 * waits for its children, because beads refuses to close it before them.
 */
const waitsOf = (graph: Graph): { readonly of: ReadonlyMap<string, Waits> } | { readonly problem: BeadsProblem } => {
  const tree = new Map(graph.issues.map((issue) => [issue.id, graph.parents(issue).map(({ id }) => id)]))
  const ordered = inOrder(tree)
  if ('circle' in ordered) return { problem: { kind: 'circle', ids: ordered.circle } }
  const blockers = new Map<string, ReadonlySet<string>>()
  const waits = new Map<string, Waits>()
  // Parents first.
  for (const id of ordered.order) {
    const issue = graph.byId.get(id)
    if (issue === undefined || ['deleted', 'closed'].includes(issueKind(issue))) continue
    const own = new Set(issue.dependencies.flatMap((dependency) => blockersOf(dependency, graph)))
    for (const parent of graph.parents(issue)) for (const one of blockers.get(parent.id) ?? []) own.add(one)
    blockers.set(id, own)
    const children = issue.type === 'epic' ? graph.children(id).filter((child) => issueKind(child) === 'live') : []
    const all = [...new Set([...own, ...children.map((child) => child.id)])]
    if (all.length > MOST_AFTER) return { problem: { kind: 'waits-for-too-many', issue, limit: MOST_AFTER } }
    const isItem = (one: string): boolean => {
      const target = graph.byId.get(one)
      return target !== undefined && issueKind(target) === 'live'
    }
    waits.set(id, { after: all.filter(isItem), outside: all.filter((one) => !isItem(one)) })
  }
  return { of: waits }
}

/** The issues that this dependency still waits for. */
const blockersOf = (
  { on, type, anyChild }: BeadsIssue['dependencies'][number],
  { byId, children }: Graph,
): readonly string[] => {
  const target = byId.get(on)
  if (type === 'blocks' || type === 'conditional-blocks') return target === undefined || isOpen(target) ? [on] : []
  if (type !== 'waits-for') return []
  if (target === undefined) return [on]
  const all = children(on)
  if (anyChild && all.some(({ status }) => status === 'closed')) return []
  return all.filter(isOpen).map(({ id }) => id)
}

/** Whether the issue still blocks others, by beads' rules. */
const isOpen = (issue: BeadsIssue): boolean =>
  !['deleted', 'closed'].includes(issueKind(issue)) && issue.status !== 'pinned'
