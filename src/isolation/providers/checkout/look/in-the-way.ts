import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sha } from '../../../../domain/names.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow, shownPath, toRaw } from '../../../../domain/text/raw-path.ts'
import type { Tree } from '../../../../git/door.ts'
import { readTree } from '../../../../git/objects.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'
import type { IsolationContext } from '../../../context.ts'
import { everyChangeBetween } from '../../../../git/changes.ts'
import { looseName } from '../../../../git/disk-case.ts'
import type { Setting } from '../../../../git/neutral.ts'
import { convertedEdits } from './converted-edits.ts'
import type { Dirt } from './dirt.ts'

export type Move = {
  readonly from: Sha
  readonly to: Sha
  /** Those of this tree's checkouts. */
  readonly settings: readonly Setting[]
}

/**
 * What a move to this commit would overwrite or delete although git calls the tree clean: ignored files, files we
 * added, submodules, repositories, and edits that a filter hides from git. Git replaces ignored files, and for a file
 * it deletes a directory of the same name with anything ignored or checked out in it.
 */
export const inTheWay = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  dirt: Pick<Dirt, 'ignored' | 'additions' | 'special' | 'repositories' | 'worktrees' | 'submodulePaths' | 'converted'>,
  move: Move,
): Promise<string[]> => {
  const others = [...dirt.special, ...dirt.repositories, ...dirt.worktrees].map(({ path }) => path)
  const submodules: string[] = []
  for (const path of dirt.submodulePaths) if (!(await isEmpty(tree, path))) submodules.push(path)
  const entries = await readTree(context.git, tree, move.to)
  const coming = entries.map(({ bytes, type }) => ({ path: toRaw(bytes), isSubmodule: type === 'commit' }))
  // The tree's own `.git`, spelled differently.
  const disk = { ignoresCase: existsSync(join(tree.path, '.GIT')) }
  const files = [...dirt.ignored, ...dirt.additions, ...others]
  return [
    ...(await collisions({ files, submodules }, coming, disk)),
    ...(await hiddenEdits(context, tree, dirt.converted, { move, coming, disk })),
  ]
}

/**
 * Git rewrites a file when its blob or mode changes. In a repository with CRLF line ends every file is converted, so
 * only those that the move touches are compared. In a sparse checkout all are: a move also deletes files outside the
 * patterns, and writes those now inside.
 */
const hiddenEdits = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  converted: readonly string[],
  { move, coming, disk }: { readonly move: Move; readonly coming: readonly Coming[]; readonly disk: Disk },
): Promise<string[]> => {
  if (converted.length === 0) return []
  const changes = await everyChangeBetween(context.git, tree, move.from, move.to)
  const changed = new Set(changes.map(({ path }) => path))
  const left = converted.filter((path) => !changed.has(path))
  const touched = (await isSparse(context, tree)) ? converted : converted.filter((path) => changed.has(path))
  const stays = new Set(left)
  return [
    // If the disk treats two names as one, a new file can replace one that stays.
    ...(await collisions(
      { files: left, submodules: [] },
      coming.filter(({ path }) => !stays.has(path)),
      disk,
    )),
    ...(await convertedEdits(context, tree, { commit: move.from, paths: touched, settings: move.settings })),
  ]
}

/** Assumed unless the configuration clearly denies it. */
const isSparse = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<boolean> => {
  const setting = (await git.config(tree)).findLast(({ key }) => key === 'core.sparsecheckout')
  return setting !== undefined && !/^(?:false|no|off|0|)$/i.test(setting.value ?? 'true')
}

/** A submodule that was never fetched: git makes an empty directory for it. */
const isEmpty = async (tree: Tree, path: string): Promise<boolean> =>
  (await unlessMissing(readdir(bytesBelow(tree.path, path))))?.length === 0

type Here = { readonly files: readonly string[]; readonly submodules: readonly string[] }
type Disk = { readonly ignoresCase: boolean }
type Coming = { readonly path: string; readonly isSubmodule: boolean }
type Node = { readonly inner: Map<string, Node>; path: string | undefined; isSubmodule: boolean }

/**
 * The existing paths that are equal to, below or above a coming one. Git leaves a submodule that stays one alone. Uses
 * a tree of names, since a stranger controls the number and depth of the paths.
 */
export const collisions = async (here: Here, coming: readonly Coming[], { ignoresCase }: Disk): Promise<string[]> => {
  const slice = createTimeSlice()
  const names = (raw: string): string[] => {
    const path = trimEndOf(raw, '/')
    // macOS treats two spellings of an accented letter as one.
    return (ignoresCase ? looseName(path) : shownPath(path).normalize('NFC')).split('/')
  }
  const newNode = (): Node => ({ inner: new Map(), path: undefined, isSubmodule: false })
  const root = newNode()
  const add = (path: string, isSubmodule: boolean): void => {
    let node = root
    for (const name of names(path)) {
      const next = node.inner.get(name) ?? newNode()
      node.inner.set(name, next)
      node = next
    }
    node.path = path
    node.isSubmodule = isSubmodule
  }
  const hit = ({ path, isSubmodule }: Coming): string | undefined => {
    let node = root
    for (const name of names(path)) {
      if (node.path !== undefined) return node.path
      const next = node.inner.get(name)
      if (next === undefined) return undefined
      node = next
    }
    return isSubmodule && node.isSubmodule ? undefined : path
  }
  const found = new Set<string>()
  const inTurns = async <T>(items: readonly T[], each: (item: T) => void): Promise<void> => {
    for (const item of items) {
      if (slice.isOver()) await slice.next()
      each(item)
    }
  }
  await inTurns(here.files, (path) => add(path, false))
  await inTurns(here.submodules, (path) => add(path, true))
  await inTurns(coming, (entry) => {
    const path = hit(entry)
    if (path !== undefined) found.add(path)
  })
  return [...found]
}
