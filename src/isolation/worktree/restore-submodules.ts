import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { toRepoPath } from '../../domain/names.ts'
import type { LeftOut, RestorePoint } from '../../domain/restore-point.ts'
import { checkoutIndex } from '../../git/checkout.ts'
import { readConfigFile, writeConfigFile } from '../../git/config-file.ts'
import type { Tree } from '../../git/door.ts'
import { replaceFileSync } from '../../process/replace-file.ts'
import type { IsolationContext } from '../context.ts'
import { isInside } from '../paths.ts'
import { copyTree } from './archive.ts'
import { unlessMissing } from '../../domain/missing.ts'

/**
 * Submodules' git directories lay in the old record, and with them perhaps the only copy of a commit. They come back
 * into the new record; each is told where its files are now, and its files are laid from its own index.
 */
export const bringSubmodules = async (
  context: IsolationContext,
  saved: string,
  tree: Tree,
  point: RestorePoint,
  leftOut: LeftOut[],
): Promise<void> => {
  const from = join(saved, 'modules')
  if ((await unlessMissing(lstat(from))) === undefined) return
  await copyTree(saved, tree.gitDir, 'modules', leftOut)
  const { environment, nested } = point.contents
  const oldRecord = join(tree.commonDir, 'worktrees', environment.adminName ?? '')
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
    await mkdir(directory, { recursive: true })
    replaceFileSync(join(directory, '.git'), `gitdir: ${module}\n`)
    // One with changes was kept whole, file by file.
    if (nested.includes(path)) continue
    await checkoutIndex(context.git, { commonDir: toRepoPath(module), gitDir: module, path: directory })
  }
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
