import { trimEndOf } from '../../../../domain/trim-end.ts'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sha } from '../../../../domain/names.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow, shownPath, toRaw } from '../../../../domain/raw-path.ts'
import type { Tree } from '../../../../git/door.ts'
import { readTree } from '../../../../git/objects.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'
import type { IsolationContext } from '../../../context.ts'
import type { Dirt } from './dirt.ts'

/**
 * What a move to this commit would overwrite or delete although git calls the tree clean: ignored files, files we added,
 * submodules and repositories. Git deletes a whole directory for a file of the same name, whatever is ignored or
 * checked out in it; `--no-overwrite-ignore` and `--keep` do not prevent that.
 */
export const inTheWay = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  dirt: Pick<Dirt, 'ignored' | 'additions' | 'special' | 'repositories' | 'worktrees' | 'submodulePaths'>,
  target: Sha,
): Promise<string[]> => {
  const others = [...dirt.special, ...dirt.repositories, ...dirt.worktrees].map(({ path }) => path)
  const submodules: string[] = []
  for (const path of dirt.submodulePaths) if (!(await isEmpty(tree, path))) submodules.push(path)
  const entries = await readTree(context.git, tree, target)
  return collisions(
    { files: [...dirt.ignored, ...dirt.additions, ...others], submodules },
    entries.map(({ bytes, type }) => ({ path: toRaw(bytes), isSubmodule: type === 'commit' })),
    // The tree's own `.git` under another spelling.
    { ignoresCase: existsSync(join(tree.path, '.GIT')) },
  )
}

/** A submodule that was never fetched: git makes an empty directory for it. */
const isEmpty = async (tree: Tree, path: string): Promise<boolean> =>
  (await unlessMissing(readdir(bytesBelow(tree.path, path))))?.length === 0

type Here = { readonly files: readonly string[]; readonly submodules: readonly string[] }
type Coming = { readonly path: string; readonly isSubmodule: boolean }
type Node = { readonly inner: Map<string, Node>; path: string | undefined; isSubmodule: boolean }

/**
 * The paths here that one of those to come is, lies below or lies above. A submodule that stays a submodule is left
 * alone by git. A tree of names, since a stranger decides how many paths there are and how deep they go.
 */
export const collisions = async (
  here: Here,
  coming: readonly Coming[],
  { ignoresCase }: { readonly ignoresCase: boolean },
): Promise<string[]> => {
  const slice = createTimeSlice()
  const names = (raw: string): string[] => {
    // macOS takes two spellings of an accented letter for one name.
    const text = shownPath(trimEndOf(raw, '/')).normalize('NFC')
    return (ignoresCase ? text.toUpperCase().toLowerCase() : text).split('/')
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
