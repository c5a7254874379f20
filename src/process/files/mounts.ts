import { lstatSync, readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { rawBytes, shownPath, toRaw } from '../../domain/text/raw-path.ts'
import { listDirectory } from './list-directory.ts'
import { createTimeSlice } from '../time-slice.ts'

/** A file system mounted on a directory (or file) inside a tree that is about to be deleted. */
export type Mount = {
  readonly path: string
  /** `bind mount of /data`, `tmpfs`, `ext4 on /dev/sdb1`. */
  readonly what: string
}

/**
 * Everything mounted on or below these directories. `rm -rf` and `git worktree remove` would empty it. Throws if
 * unknown, which isn't the same as none.
 */
export const mountsInside = async (directories: readonly string[]): Promise<Mount[]> => {
  const real = directories.map((path) => realpathSync.native(path, { encoding: 'buffer' }))
  if (process.platform === 'linux') return mountsInTable(readFileSync('/proc/self/mountinfo'), real.map(toRaw))
  const found: Mount[] = []
  for (const path of real) found.push(...(await mountsByDevice(path)))
  return found
}

type Entry = {
  readonly device: string
  /** The mounted directory of that file system: `/`, except for a bind mount of a part. */
  readonly root: string
  readonly at: string
  readonly type: string
  readonly source: string
}

/** Exact on Linux, where a bind mount shares its source's device. Paths are raw. */
export const mountsInTable = (table: Buffer, directories: readonly string[]): Mount[] => {
  const entries = toRaw(table)
    .split('\n')
    .filter((line) => line !== '')
    .map(parseEntry)
  const inside = entries.filter(({ at }) => directories.some((directory) => isInside(directory, at)))
  // With stacked mounts at one path, only the top one can be unmounted next.
  const last = new Map(inside.map((entry) => [entry.at, entry]))
  return [...last.values()].map((entry) => ({ path: shownPath(entry.at), what: describe(entry, entries) }))
}

/** `36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw`: proc_pid_mountinfo(5). */
const parseEntry = (line: string): Entry => {
  const [before = '', after = ''] = line.split(' - ')
  const [, , device, root, at] = before.split(' ')
  const [type, source = ''] = after.split(' ')
  if (device === undefined || root === undefined || at === undefined || type === undefined || type === '') {
    throw new Error(`/proc/self/mountinfo has an unexpected line: ${line.slice(0, 80)}`)
  }
  return { device, root: unescape(root), at: unescape(at), type, source: unescape(source) }
}

/** Space, tab, newline, backslash and `#` are escaped as three octal digits. */
const unescape = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

const describe = (mount: Entry, all: readonly Entry[]): string => {
  const origin = all.find((other) => other.at !== mount.at && showsSame(other, mount))
  if (origin !== undefined) {
    const below = origin.root === '/' ? mount.root : mount.root.slice(origin.root.length)
    return `bind mount of ${shownPath(`${origin.at}${below}`.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1'))}`
  }
  if (mount.root !== '/') return `bind mount of ${shownPath(mount.root)}`
  return mount.source.startsWith('/') ? `${mount.type} on ${shownPath(mount.source)}` : mount.type
}

const showsSame = (one: Entry, other: Entry): boolean => one.device === other.device && isInside(one.root, other.root)

const isInside = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)

/** Without bind mounts (macOS), a directory on another device than its parent is a mount point. */
export const mountsByDevice = async (top: Buffer): Promise<Mount[]> => {
  const found: Mount[] = []
  const device = lstatSync(top).dev
  const add = (path: string): void => void found.push({ path: shownPath(path), what: 'another file system' })
  if (lstatSync(dirname(top.toString())).dev !== device) add(toRaw(top))
  const slice = createTimeSlice()
  const visit = async (path: string): Promise<void> => {
    for (const entry of await listDirectory(rawBytes(path), { slice })) {
      if (slice.isOver()) await slice.next()
      const inner = `${path}/${entry.name}`
      if (!entry.isDirectory()) continue
      if (lstatSync(rawBytes(inner)).dev === device) await visit(inner)
      else add(inner)
    }
  }
  await visit(toRaw(top))
  return found
}
