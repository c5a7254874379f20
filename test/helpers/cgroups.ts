import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { killCgroup, removeCgroup, writableCgroup } from '../../src/process/cgroup.ts'
import { runMarkId } from '../../src/process/run-mark.ts'

/** By the mark of the home, which is in the name of every cgroup that its runs get. */
export const cgroupsOf = (home: string): string[] => {
  const [mark = ''] = runMarkId(home, '', 0).split('.')
  const base = writableCgroup()
  if (base === undefined) return []
  return readdirSync(base)
    .filter((name) => name.startsWith(`coppice-${mark}.`))
    .map((name) => join(base, name))
}

/** For a home that no server will start in again: a test that killed its server is done. */
export const clearCgroups = (home: string): void => {
  for (const cgroup of cgroupsOf(home)) {
    killCgroup(cgroup)
    removeCgroup(cgroup)
  }
}
