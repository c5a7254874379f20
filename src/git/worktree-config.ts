import { realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { lastValue } from './config-entries.ts'
import { writeConfigFile } from './config-file.ts'
import type { Git, Tree } from './door.ts'

/** Sets values for one worktree only. The caller holds the repository's lock. */
export const setWorktreeConfig = async (
  git: Git,
  tree: Tree,
  values: readonly (readonly [key: string, value: string])[],
): Promise<void> => {
  await enableWorktreeConfig(git, tree)
  const file = join(tree.gitDir, tree.gitDir === tree.commonDir ? 'config' : 'config.worktree')
  for (const [key, value] of values) await writeConfigFile(git, file, key, value)
}

/**
 * Turns on configuration per worktree. Git then applies the shared file's `core.bare` to every worktree, so that
 * setting is moved to the main worktree's file. Each step is a git command that is harmless without the next: a
 * repository without `core.bare` is bare unless its directory is called `.git`.
 */
const enableWorktreeConfig = async (git: Git, tree: Tree): Promise<void> => {
  if (tree.gitDir === tree.commonDir) return
  const entries = (await git.config({ commonDir: tree.commonDir })).filter(({ scope }) => scope === 'local')
  if (lastValue(entries, 'extensions.worktreeconfig') === 'true') return
  // A person may keep it elsewhere.
  const shared = realpathSync(join(tree.commonDir, 'config'))
  // `core.bare=false` is true of every worktree.
  const isBare = lastValue(entries, 'core.bare') === 'true'
  const fixed = [
    ...(lastValue(entries, 'core.worktree') === undefined ? [] : ['core.worktree']),
    ...(isBare && basename(tree.commonDir) === '.git' ? ['core.bare'] : []),
  ]
  if (fixed.length > 0) {
    const what = `${shared} sets ${fixed.join(' and ')}, so worktrees can't have settings of their own`
    throw new AppError('unsupported', what, {
      remedy: 'use clones for this repository: set isolation.provider to clone',
    })
  }
  if (isBare) {
    await writeConfigFile(git, join(tree.commonDir, 'config.worktree'), 'core.bare', 'true')
    const args = ['config', '--file', shared, '--unset-all', 'core.bare']
    await git.run({ operation: 'config', at: { cwd: '/' }, args, ok: [0, 5], locks: true })
  }
  await writeConfigFile(git, shared, 'extensions.worktreeConfig', 'true')
}
