import { lstat, readdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError } from '../../../../domain/errors.ts'
import { toRepoPath } from '../../../../domain/names.ts'
import { bytesBelow, rawBytes, shownPath, toRaw } from '../../../../domain/text/raw-path.ts'
import { halfDone } from '../../../../git/admin-dir.ts'
import { convertedFiles } from '../../../../git/converted.ts'
import type { Tree } from '../../../../git/door.ts'
import { readIndexState } from '../../../../git/hidden.ts'
import { readStatus } from '../../../../git/status.ts'
import type { TreePath } from '../../../../git/tree-path.ts'
import { readUntrustedText } from '../../../../process/files/read-untrusted.ts'
import type { IsolationContext } from '../../../context.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { linkedGitDirectory, maxLineBytes } from '../../../../domain/git-link.ts'
import { isDirectoryBelow } from './directory-below.ts'

export type DirtySubmodule = { readonly path: string; readonly problem: 'has changes' | 'has files but no .git' }

/** Submodules: the tree's index names them, and its record holds their git directories. Paths are raw. */
export type Inner = {
  readonly dirty: readonly DirtySubmodule[]
  readonly ignored: readonly string[]
  /** Those whose git directory is among their files: repositories inside the tree like any other. */
  readonly embedded: readonly Tree[]
  /** Clean ones with files that a checkout would write differently. */
  readonly converted: readonly string[]
}

/**
 * Each has its own repository and configuration, so ask each separately through the door: `git status` would run their
 * filters. Includes nested ones.
 */
export const lookIntoSubmodules = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  gitlinks: readonly TreePath[],
  prefix = '',
): Promise<Inner> => {
  const found = {
    dirty: [] as DirtySubmodule[],
    ignored: [] as string[],
    embedded: [] as Tree[],
    converted: [] as string[],
  }
  // An unmerged one is in the index up to three times.
  for (const name of new Set(gitlinks.map(({ bytes }) => toRaw(bytes)))) {
    const path = `${prefix}${name}`
    // Git status shows a file or link in its place as a change.
    if (!(await isDirectoryBelow(tree.path, name))) continue
    if (await hasFilesWithoutGit(tree, name)) found.dirty.push({ path, problem: 'has files but no .git' })
    const inner = await submoduleTree(tree, name)
    if (inner === undefined) continue
    if (inner.gitDir === (await realpath(join(inner.path, '.git')))) {
      found.embedded.push(inner)
      continue
    }
    const [status, index] = await Promise.all([readStatus(context.git, inner), readIndexState(context.git, inner)])
    const count = status.changed.length + status.unmerged.length + status.untracked.length + index.hidden.length
    if (count > 0 || halfDone(inner.gitDir).length > 0) found.dirty.push({ path, problem: 'has changes' })
    else if ((await convertedFiles(context.git, inner, index)).length > 0) found.converted.push(path)
    found.ignored.push(...status.ignored.map((one) => `${path}/${toRaw(one.bytes)}`))
    const deeper = await lookIntoSubmodules(context, inner, index.gitlinks, `${path}/`)
    found.dirty.push(...deeper.dirty)
    found.ignored.push(...deeper.ignored)
    found.embedded.push(...deeper.embedded)
    found.converted.push(...deeper.converted)
  }
  return found
}

/**
 * Git status lists nothing below a submodule's directory, even if it was never fetched or someone deleted its `.git` to
 * make its files part of the tree.
 */
const hasFilesWithoutGit = async (tree: Tree, path: string): Promise<boolean> => {
  if (!(await isDirectoryBelow(tree.path, path))) return false
  const names = await readdir(bytesBelow(tree.path, path), { encoding: 'latin1' })
  return names.length > 0 && !names.includes('.git')
}

/** Undefined for one without `.git`. */
export const submoduleTree = async (tree: Tree, path: string): Promise<Tree | undefined> => {
  const link = await unlessMissing(lstat(bytesBelow(tree.path, `${path}/.git`)))
  if (link === undefined) return undefined
  const directory = join(tree.path, shownPath(path))
  if (!Buffer.from(shownPath(path)).equals(rawBytes(path))) {
    throw new AppError('unsupported', `submodule ${shownPath(path)} has a name that is not UTF-8`)
  }
  const file = join(directory, '.git')
  const gitDir = link.isDirectory()
    ? file
    : resolve(directory, linkedGitDirectory(await readUntrustedText(file, { maxBytes: maxLineBytes })) ?? '.git')
  const real = await realpath(gitDir)
  return { commonDir: toRepoPath(real), gitDir: real, path: directory }
}
