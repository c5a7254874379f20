import type { CallOptions, Git, Repo } from './door.ts'

/** Makes the two links agree again (record → directory, directory → record) after a directory was moved by hand. */
export const repairWorktree = async (
  git: Git,
  repo: Repo,
  path: string,
  { signal }: CallOptions = {},
): Promise<void> => {
  const args = ['worktree', 'repair', '--end-of-options', path]
  const at = { commonDir: repo.commonDir }
  await git.run({ operation: 'worktree repair', at, args, locks: true, ...(signal && { signal }) })
}
