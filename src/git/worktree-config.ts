import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import { copyUntrusted } from '../process/files/read-untrusted.ts'
import { syncPath } from '../process/files/sync-path.ts'
import { lastValue } from './config-entries.ts'
import { writeConfigFile } from './config-file.ts'
import type { Git, Repo, Tree } from './door.ts'

/** A value for this worktree and no other. The caller holds the repository's lock. */
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
 * Lets worktrees have configuration of their own. From then on git applies `core.bare` and `core.worktree` of the shared
 * file to every worktree, so they move to that of the main one, in the same step: a copy is changed and renamed into
 * place. It is git's own lock file for its configuration, so git doesn't write meanwhile.
 */
const enableWorktreeConfig = async (git: Git, tree: Tree): Promise<void> => {
  if (tree.gitDir === tree.commonDir) return
  const entries = (await git.config({ commonDir: tree.commonDir })).filter(({ scope }) => scope === 'local')
  if (lastValue(entries, 'extensions.worktreeconfig') === 'true') return
  const moved = ['core.bare', 'core.worktree'].flatMap((key) => {
    const value = lastValue(entries, key)
    // `core.bare=false` is true of every worktree.
    return value === undefined || (key === 'core.bare' && value === 'false') ? [] : [[key, value] as const]
  })
  for (const [key, value] of moved) await writeConfigFile(git, join(tree.commonDir, 'config.worktree'), key, value)
  await replaceConfig(tree, async (file) => {
    for (const [key] of moved) await unset(git, file, key)
    await writeConfigFile(git, file, 'extensions.worktreeConfig', 'true')
  })
}

const unset = async (git: Git, file: string, key: string): Promise<void> => {
  const args = ['config', '--file', file, '--unset-all', key]
  await git.run({ operation: 'config', at: { cwd: '/' }, args, ok: [0, 5], locks: true })
}

const replaceConfig = async ({ commonDir }: Repo, change: (file: string) => Promise<void>): Promise<void> => {
  const [config, lock] = [join(commonDir, 'config'), join(commonDir, 'config.lock')]
  try {
    await copyUntrusted(config, lock)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    throw new AppError('busy', `another git is changing ${config}`, { cause: error, remedy: 'try again' })
  }
  try {
    await change(lock)
    await syncPath(lock)
    renameSync(lock, config)
  } catch (error) {
    rmSync(lock, { force: true })
    throw error
  }
}
