import type { Git, Tree } from './door.ts'

/**
 * No tracked file's times or size differ from the index. Cheaper than a status, and stricter: even a `touch` counts as
 * a change. `--ignore-submodules=all`: they are separate repositories.
 */
export const isUntouchedByStat = async (git: Git, tree: Tree): Promise<boolean> => {
  const args = ['diff-files', '--quiet', '--no-ext-diff', '--ignore-submodules=all']
  const { exitCode } = await git.run({ operation: 'diff-files', at: tree, args, ok: [0, 1] })
  return exitCode === 0
}
