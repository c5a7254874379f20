import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { unlessMissingSync } from '../domain/missing.ts'

/**
 * This process's cgroup, if we may create others below it: as root, in a systemd unit with `Delegate=yes`, or below a
 * systemd user manager. Undefined if cgroups are missing, version 1 or read-only, as in most containers.
 */
export const writableCgroup = (): string | undefined => {
  if (process.platform !== 'linux') return undefined
  try {
    const own = ownCgroup(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'))
    if (own === undefined) return undefined
    accessSync(own, constants.W_OK)
    accessSync(join(own, 'cgroup.procs'), constants.W_OK)
    return own
  } catch {
    return undefined
  }
}

/** If we were started in a run that has a cgroup: the one around it, for what must outlive the run. */
export const cgroupAroundRun = (): string | undefined => {
  if (process.platform !== 'linux') return undefined
  try {
    const own = ownCgroup(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'))
    const [, around] = /^(.*)\/coppice-[0-9a-f]{12}\.[^/]*(?:\/.*)?$/.exec(own ?? '') ?? []
    return around
  } catch {
    return undefined
  }
}

/** Our own cgroup in the version 2 hierarchy. A container may see only part of it, with a root other than `/`. */
export const ownCgroup = (mountinfo: string, cgroup: string): string | undefined => {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1]
  if (path === undefined) return undefined
  for (const line of mountinfo.split('\n')) {
    const [, root, mountPoint] = /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /.exec(line) ?? []
    if (root === undefined || mountPoint === undefined) continue
    const below = belowRoot(path, root)
    if (below !== undefined) return join(unescaped(mountPoint), below)
  }
  return undefined
}

/** A path outside the mounted root starts with `/..` and can't be reached. */
const belowRoot = (path: string, root: string): string | undefined => {
  if (path.startsWith('/..')) return undefined
  if (root === '/') return path
  if (path === root || path.startsWith(`${root}/`)) return path.slice(root.length)
  return undefined
}

/** proc(5): spaces and backslashes are escaped in octal. */
const unescaped = (path: string): string =>
  path.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** False if the kernel refuses; the run continues without one. */
export const makeCgroup = (path: string): boolean => {
  try {
    mkdirSync(path)
    // Kernels before 5.14 can't kill a whole cgroup at once, so it would be useless.
    accessSync(join(path, 'cgroup.kill'), constants.W_OK)
    return true
  } catch {
    removeCgroup(path)
    return false
  }
}

/** Pids in it and in the cgroups below. A process hidden by another pid namespace shows as 0 and has no usable pid. */
export const cgroupMembers = (path: string): readonly number[] =>
  [path, ...subgroups(path)]
    .flatMap((group) => (unlessGone(() => readFileSync(join(group, 'cgroup.procs'), 'utf8')) ?? '').split('\n'))
    .flatMap((pid) => (pid === '' || pid === '0' ? [] : [Number(pid)]))

/** As the kernel reports it: includes hidden processes and every cgroup below. */
export const isPopulated = (path: string): boolean =>
  /^populated 1$/m.test(unlessGone(() => readFileSync(join(path, 'cgroup.events'), 'utf8')) ?? '')

/** SIGKILL for all members at once, so even a fast forker can't escape. */
export const killCgroup = (path: string): void => {
  unlessGone(() => writeFileSync(join(path, 'cgroup.kill'), '1'))
}

/** The kernel refuses to remove a cgroup that isn't empty. True if it is gone. */
export const removeCgroup = (path: string): boolean => {
  // After a reboot the path may not exist, or may be an ordinary directory.
  if (!existsSync(join(path, 'cgroup.procs'))) return true
  // Most have none below, and listing it takes longer.
  if (isRemoved(path)) return true
  return [...subgroups(path).toReversed(), path].every(isRemoved)
}

const isRemoved = (group: string): boolean => {
  try {
    unlessGone(() => rmdirSync(group))
    return true
  } catch {
    return false
  }
}

const MAX_SUBGROUPS = 1_000

/** Parents before children. */
const subgroups = (path: string, found: string[] = []): readonly string[] => {
  for (const entry of unlessGone(() => readdirSync(path, { withFileTypes: true })) ?? []) {
    if (!entry.isDirectory() || found.length >= MAX_SUBGROUPS) continue
    found.push(join(path, entry.name))
    subgroups(join(path, entry.name), found)
  }
  return found
}

/** ENODEV: the cgroup was removed after the file was opened. */
const unlessGone = <T>(work: () => T): T | undefined => {
  try {
    return unlessMissingSync(work)
  } catch (error) {
    if (hasCode(error, 'ENODEV')) return undefined
    throw error
  }
}
