import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { ProcessRow } from './process-row.ts'

/** Who is related to whom, to collect several trees from one process table. */
export type Relatives = {
  readonly byPid: ReadonlyMap<number, ProcessRow>
  /** Children, and members of the group or session that this pid leads. */
  readonly of: ReadonlyMap<number, readonly ProcessRow[]>
}

export const relativesIn = (rows: readonly ProcessRow[]): Relatives => {
  const byPid = new Map<number, ProcessRow>()
  const of = new Map<number, ProcessRow[]>()
  for (const row of rows) {
    byPid.set(row.identity.pid, row)
    for (const pid of new Set([row.parentPid, row.processGroup, row.session])) {
      const known = of.get(pid)
      if (known === undefined) of.set(pid, [row])
      else known.push(row)
    }
  }
  return { byPid, of }
}

/**
 * A process and everything it started: descendants, and members of the sessions and groups they lead. Collected before
 * killing: afterwards orphans belong to pid 1, and their origin is lost.
 *
 * Grows from known members, even dead ones: the kernel doesn't reuse a pid while a session or group has it, so a
 * leader's pid still names its group after its death.
 */
export const collectTree = (
  rows: readonly ProcessRow[],
  members: readonly ProcessIdentity[],
): readonly ProcessIdentity[] => treeIn(relativesIn(rows), members).map(({ identity }) => identity)

export const treeIn = (relatives: Relatives, members: readonly ProcessIdentity[]): readonly ProcessRow[] => {
  const found = new Map<number, ProcessRow>()
  const left = pidsStillOwned(relatives, members)
  const seen = new Set(left)
  for (let pid = left.shift(); pid !== undefined; pid = left.shift()) {
    const own = relatives.byPid.get(pid)
    if (own !== undefined) found.set(pid, own)
    // Not the group or session the root merely belongs to: that may be the user's shell.
    for (const row of relatives.of.get(pid) ?? []) {
      if (seen.has(row.identity.pid)) continue
      seen.add(row.identity.pid)
      left.push(row.identity.pid)
    }
  }
  return [...found.values()]
}

/** Ourselves and our ancestors, which must never be signalled. */
export const selfAndAncestors = (rows: readonly ProcessRow[], self: number): ReadonlySet<number> => {
  const parents = new Map(rows.map((row) => [row.identity.pid, row.parentPid]))
  const ancestors = new Set<number>()
  for (
    let pid: number | undefined = self;
    pid !== undefined && pid > 0 && !ancestors.has(pid);
    pid = parents.get(pid)
  ) {
    ancestors.add(pid)
  }
  return ancestors
}

export const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.startTime === b.startTime

/** A member's pid that another process has now no longer leads to relatives. */
const pidsStillOwned = ({ byPid }: Relatives, members: readonly ProcessIdentity[]): number[] =>
  members
    .filter((member) => member.pid > 1)
    .filter((member) => {
      const holder = byPid.get(member.pid)
      return holder === undefined || isSame(holder.identity, member)
    })
    .map((member) => member.pid)
