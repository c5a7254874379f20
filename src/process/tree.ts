import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { ProcessRow } from './process-row.ts'

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
): readonly ProcessIdentity[] => {
  const pids = new Set(pidsStillOwned(rows, members))
  const found = new Map<number, ProcessIdentity>()
  for (let grown = true; grown;) {
    grown = false
    for (const row of rows) {
      const { pid } = row.identity
      // Not the group or session the root merely belongs to: that may be the user's shell.
      const belongs = pids.has(pid) || pids.has(row.parentPid) || pids.has(row.processGroup) || pids.has(row.session)
      if (!belongs || found.has(pid)) continue
      found.set(pid, row.identity)
      pids.add(pid)
      grown = true
    }
  }
  return rootFirst(found, members)
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
const pidsStillOwned = (rows: readonly ProcessRow[], members: readonly ProcessIdentity[]): readonly number[] => {
  const now = new Map(rows.map((row) => [row.identity.pid, row.identity]))
  return members
    .filter((member) => member.pid > 1)
    .filter((member) => {
      const holder = now.get(member.pid)
      return holder === undefined || isSame(holder, member)
    })
    .map((member) => member.pid)
}

const rootFirst = (
  found: ReadonlyMap<number, ProcessIdentity>,
  members: readonly ProcessIdentity[],
): readonly ProcessIdentity[] => {
  const root = members[0] === undefined ? undefined : found.get(members[0].pid)
  const others = [...found.values()].filter((identity) => identity !== root)
  return root === undefined ? others : [root, ...others]
}
