import { lstat, mkdir, readdir } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { toRepoPath } from '../../../../domain/names.ts'
import { bytesBelow, toRaw } from '../../../../domain/text/raw-path.ts'
import type { LeftOut, RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { checkoutIndex } from '../../../../git/checkout.ts'
import { readConfigFile, writeConfigFile } from '../../../../git/config-file.ts'
import type { Tree } from '../../../../git/door.ts'
import { readIndexState } from '../../../../git/hidden.ts'
import { replaceFileSync } from '../../../../process/files/replace-file.ts'
import type { Setting } from '../../../../git/neutral.ts'
import type { IsolationContext } from '../../../context.ts'
import { isDirectoryBelow } from '../look/directory-below.ts'
import { isInside } from '../../../paths.ts'
import { copyTree } from './archive.ts'
import { restoreRawBytes } from './raw-files.ts'
import { unlessMissing } from '../../../../domain/missing.ts'

/**
 * Submodules' git directories were in the old record, perhaps with the only copy of a commit. Restores them into the
 * new record, points each to its files' new place, and writes the files from its own index.
 */
export const restoreSubmodules = async (
  context: Pick<IsolationContext, 'git'>,
  saved: string,
  tree: Tree,
  point: RestorePoint,
  { leftOut, settings }: { readonly leftOut: LeftOut[]; readonly settings: readonly Setting[] },
): Promise<void> => {
  const from = join(saved, 'modules')
  if ((await unlessMissing(lstat(from))) === undefined) return
  await copyTree(saved, tree.gitDir, 'modules', leftOut)
  const { environment, nested } = point.contents
  const isKept = (path: string): boolean => nested.some((one) => path === one || path.startsWith(`${one}/`))
  const gitlinks = new Set(await gitlinksOf(context, tree))
  const isOwnRepository = tree.gitDir === tree.commonDir
  const oldRecord = isOwnRepository
    ? join(environment.path, '.git')
    : join(tree.commonDir, 'worktrees', environment.adminName ?? '')
  for (const module of await moduleDirs(join(tree.gitDir, 'modules'))) {
    const config = join(module, 'config')
    const worktree = await readConfigFile(context.git, config, 'core.worktree')
    if (worktree === undefined) continue
    const oldModule = join(oldRecord, relative(tree.gitDir, module))
    const path = relative(environment.path, resolve(oldModule, worktree))
    const directory = join(tree.path, path)
    if (path === '' || !isInside(tree.path, directory)) {
      leftOut.push({ path, reason: 'the submodule had its files elsewhere' })
      continue
    }
    await writeConfigFile(context.git, config, 'core.worktree', directory)
    // What was kept whole is back, with a `.git` if it had one. Elsewhere a file, or files of the tree itself, may have
    // replaced the submodule: then only its git directory is restored.
    const belongs = isKept(path) ? await hasGit(directory) : gitlinks.has(path) && (await makeDirectory(tree, path))
    if (!belongs) continue
    replaceFileSync(join(directory, '.git'), `gitdir: ${module}\n`)
    const inner: Tree = { commonDir: toRepoPath(module), gitDir: module, path: directory }
    if (!isKept(path)) {
      await checkoutIndex(context.git, inner, { settings })
      await restoreRawBytes(context, inner, point)
    }
    for (const link of await gitlinksOf(context, inner)) gitlinks.add(`${path}/${link}`)
  }
}

const gitlinksOf = async (context: Pick<IsolationContext, 'git'>, tree: Tree): Promise<string[]> =>
  (await readIndexState(context.git, tree)).gitlinks.map(({ path }) => path)

const hasGit = async (directory: string): Promise<boolean> =>
  (await unlessMissing(lstat(join(directory, '.git')))) !== undefined

/** False if something else is in its place. */
const makeDirectory = async (tree: Tree, path: string): Promise<boolean> => {
  const raw = toRaw(Buffer.from(path))
  if ((await unlessMissing(lstat(bytesBelow(tree.path, raw)))) === undefined) {
    const parent = dirname(path)
    if (parent !== '.' && !(await makeDirectory(tree, parent))) return false
    await mkdir(join(tree.path, path))
  }
  return isDirectoryBelow(tree.path, raw)
}

/** Git directories below `modules/`, outer ones first. A submodule's name may have slashes. */
const moduleDirs = async (root: string): Promise<string[]> => {
  const found: string[] = []
  for (const entry of (await unlessMissing(readdir(root, { withFileTypes: true }))) ?? []) {
    if (!entry.isDirectory()) continue
    const directory = join(root, entry.name)
    const isGitDir = (await unlessMissing(lstat(join(directory, 'HEAD')))) !== undefined
    if (isGitDir) found.push(directory, ...(await moduleDirs(join(directory, 'modules'))))
    else found.push(...(await moduleDirs(directory)))
  }
  return found
}
