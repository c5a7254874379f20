import type { Git, Tree } from './door.ts'

/**
 * No tracked file's times or size differ from what the index says. Cheaper than a status, and stricter: a file that was
 * merely touched counts. `--ignore-submodules=all`: they have repositories of their own.
 */
export const isUntouchedByStat = async (git: Git, tree: Tree): Promise<boolean> => {
  const args = ['diff-files', '--quiet', '--no-ext-diff', '--ignore-submodules=all']
  const { exitCode } = await git.run({ operation: 'diff-files', at: tree, args, ok: [0, 1] })
  return exitCode === 0
}
