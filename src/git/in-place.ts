import type { BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { AppError } from '../domain/errors.ts'
import { unlessMissing } from '../domain/missing.ts'
import type { Sha } from '../domain/names.ts'
import { bytesBelow, shownPath } from '../domain/text/raw-path.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { type Change, everyChangeBetween } from './changes.ts'
import { looseName } from './disk-case.ts'
import type { Git, Tree } from './door.ts'

/**
 * Stops a move between two commits if something is in the way of a new file, other than what the old commit has there:
 * git silently replaces ignored files and whole directories. For tracked files that change or go, git checks the
 * content itself.
 */
export const assertNothingInPlace = async (
  git: Git,
  tree: Tree,
  { from, to }: { readonly from: Sha; readonly to: Sha },
): Promise<void> => {
  const changes = await everyChangeBetween(git, tree, from, to)
  const disk = diskOf(tree, changes)
  for (const change of changes.filter(isNewInPlace)) {
    const found = await inPlaceOf(disk, change)
    if (found !== undefined) {
      throw new AppError('busy', `${shownPath(found)} appeared meanwhile and would be overwritten`)
    }
  }
}

const absent = '000000'
const gitlink = '160000'

/** Git doesn't check a submodule before replacing it with a file. */
const isNewInPlace = ({ oldMode, newMode }: Change): boolean =>
  newMode !== absent && (oldMode === absent || (oldMode === gitlink && newMode !== gitlink))

type Disk = {
  readonly at: (path: string) => Promise<BigIntStats | undefined>
  readonly list: (path: string) => Promise<string[]>
  /** Whether the move deletes this file. On some disks it has more than one spelling. */
  readonly goes: (path: string, found: BigIntStats) => Promise<boolean>
  readonly above: (path: string) => Promise<Above>
}

/** What is above a path: a directory, nothing (the move deletes a file or link there), or something that stays. */
type Above = 'directory' | 'nothing' | { readonly stays: string }

const diskOf = (tree: Tree, changes: readonly Change[]): Disk => {
  const at = (path: string) => unlessMissing(lstat(bytesBelow(tree.path, path), { bigint: true }))
  const going = changes.filter(({ oldMode, newMode }) => newMode === absent && oldMode !== gitlink)
  const paths = new Set(going.map(({ path }) => path))
  let spellings: ReadonlyMap<string, readonly Change[]> | undefined
  const goes: Disk['goes'] = async (path, found) => {
    if (paths.has(path)) return true
    spellings ??= Map.groupBy(going, (change) => looseName(change.path))
    for (const other of spellings.get(looseName(path)) ?? []) {
      const same = await at(other.path)
      if (same?.ino === found.ino && same.dev === found.dev) return true
    }
    return false
  }
  const known = new Map<string, Above>()
  const above = async (path: string): Promise<Above> => {
    const end = path.lastIndexOf('/')
    if (end < 0) return 'directory'
    const parent = path.slice(0, end)
    const answer = known.get(parent) ?? (await lookAt(parent))
    known.set(parent, answer)
    return answer
  }
  const lookAt = async (path: string): Promise<Above> => {
    const upper = await above(path)
    if (upper !== 'directory') return upper
    const found = await at(path)
    if (found?.isDirectory() === true) return 'directory'
    return found === undefined || (await goes(path, found)) ? 'nothing' : { stays: path }
  }
  const list = async (path: string): Promise<string[]> =>
    (await listDirectory(bytesBelow(tree.path, path))).map(({ name }) => `${path}/${name}`)
  return { at, list, goes, above }
}

const inPlaceOf = async (disk: Disk, { path, newMode }: Change): Promise<string | undefined> => {
  const above = await disk.above(path)
  if (above === 'nothing') return undefined
  if (above !== 'directory') return above.stays
  const found = await disk.at(path)
  // Git keeps a directory in the place of a submodule.
  if (found === undefined || (newMode === gitlink && found.isDirectory())) return undefined
  return firstThatStays(disk, path, found)
}

/** To write a file of that name, git deletes the whole directory. An empty one holds nothing. */
const firstThatStays = async (disk: Disk, top: string, found: BigIntStats): Promise<string | undefined> => {
  const open: [string, BigIntStats][] = [[top, found]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [path, stats] = next
    if (!stats.isDirectory()) {
      if (!(await disk.goes(path, stats))) return path
      continue
    }
    for (const inner of await disk.list(path)) {
      const there = await disk.at(inner)
      if (there !== undefined) open.push([inner, there])
    }
  }
  return undefined
}
