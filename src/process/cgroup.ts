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
 * The cgroup of this process, if we may make others below it: as root, in a systemd unit with `Delegate=yes`, or below a
 * systemd user manager. Undefined where cgroups are missing, version 1 or read-only, as in most containers.
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

/** Where the version 2 hierarchy shows our own cgroup. A container may see only a part of it: then its root is not `/`. */
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

/** A path outside of the root that is mounted begins with `/..`: nothing there can be reached. */
const belowRoot = (path: string, root: string): string | undefined => {
  if (path.startsWith('/..')) return undefined
  if (root === '/') return path
  if (path === root || path.startsWith(`${root}/`)) return path.slice(root.length)
  return undefined
}

/** proc(5): spaces and backslashes in a path are written as octal numbers. */
const unescaped = (path: string): string =>
  path.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** False when the kernel refuses: the run goes on without one. */
export const makeCgroup = (path: string): boolean => {
  try {
    mkdirSync(path)
    // Kernels before 5.14 have no way to end a whole cgroup at once, and then it is of no use to us.
    accessSync(join(path, 'cgroup.kill'), constants.W_OK)
    return true
  } catch {
    removeCgroup(path)
    return false
  }
}

/** Who is in it and in the cgroups below. A process that another pid namespace hides is shown as 0: nobody to name. */
export const cgroupMembers = (path: string): readonly number[] =>
  [path, ...subgroups(path)]
    .flatMap((group) => (unlessGone(() => readFileSync(join(group, 'cgroup.procs'), 'utf8')) ?? '').split('\n'))
    .flatMap((pid) => (pid === '' || pid === '0' ? [] : [Number(pid)]))

/** The kernel's own word, which counts the hidden ones and those of every cgroup below. */
export const isPopulated = (path: string): boolean =>
  /^populated 1$/m.test(unlessGone(() => readFileSync(join(path, 'cgroup.events'), 'utf8')) ?? '')

/** SIGKILL to all of it in one step: what forks faster than anybody can look does not get away. */
export const killCgroup = (path: string): void => {
  unlessGone(() => writeFileSync(join(path, 'cgroup.kill'), '1'))
}

/** Only ever an empty one: the kernel refuses to remove any other. True when it is gone. */
export const removeCgroup = (path: string): boolean => {
  // After a restart of the machine the path may name nothing, or a directory that is no cgroup.
  if (!existsSync(join(path, 'cgroup.procs'))) return true
  try {
    for (const group of [...subgroups(path).toReversed(), path]) unlessGone(() => rmdirSync(group))
    return true
  } catch {
    return false
  }
}

const MOST_SUBGROUPS = 1_000

/** Parents before their children. */
const subgroups = (path: string, found: string[] = []): readonly string[] => {
  for (const entry of unlessGone(() => readdirSync(path, { withFileTypes: true })) ?? []) {
    if (!entry.isDirectory() || found.length >= MOST_SUBGROUPS) continue
    found.push(join(path, entry.name))
    subgroups(join(path, entry.name), found)
  }
  return found
}

/** The kernel says ENODEV for a file of a cgroup that was removed after the file was opened. */
const unlessGone = <T>(work: () => T): T | undefined => {
  try {
    return unlessMissingSync(work)
  } catch (error) {
    if (hasCode(error, 'ENODEV')) return undefined
    throw error
  }
}
