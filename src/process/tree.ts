import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { ProcessRow } from './process-row.ts'

/**
 * A process and everything that came from it: descendants, and members of the sessions and process groups they lead.
 * Collected before anything is killed: afterwards orphans hang under pid 1 and nothing tells whose they were.
 *
 * Grows from processes known to be its members, dead ones among them: the kernel gives out no pid again
 * while a session or group still bears it, so a leader's number keeps naming its group after the leader's death.
 */
export const collectTree = (
  rows: readonly ProcessRow[],
  members: readonly ProcessIdentity[],
): readonly ProcessIdentity[] => {
  const pids = new Set(namesStillTheirs(rows, members))
  const found = new Map<number, ProcessIdentity>()
  for (let grown = true; grown;) {
    grown = false
    for (const row of rows) {
      const { pid } = row.identity
      // Not the group or session the root merely lives in: that may be the user's own shell.
      const belongs = pids.has(pid) || pids.has(row.parentPid) || pids.has(row.processGroup) || pids.has(row.session)
      if (!belongs || found.has(pid)) continue
      found.set(pid, row.identity)
      pids.add(pid)
      grown = true
    }
  }
  return rootFirst(found, members)
}

/** Ourselves and those we descend from: never to be signalled. */
export const selfAndAncestors = (rows: readonly ProcessRow[], self: number): ReadonlySet<number> => {
  const parents = new Map(rows.map((row) => [row.identity.pid, row.parentPid]))
  const line = new Set<number>()
  for (let pid: number | undefined = self; pid !== undefined && pid > 0 && !line.has(pid); pid = parents.get(pid)) {
    line.add(pid)
  }
  return line
}

export const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.startTime === b.startTime

/** A member's pid that meanwhile names another process no longer leads to relatives of ours. */
const namesStillTheirs = (rows: readonly ProcessRow[], members: readonly ProcessIdentity[]): readonly number[] => {
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
