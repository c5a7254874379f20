import type { CallOptions, Git, Repo } from './door.ts'

/** Makes the two links agree again (record → directory, directory → record) after a directory was moved by hand. */
export const repairWorktree = (git: Git, repo: Repo, path: string, options: CallOptions = {}): Promise<void> =>
  repairWorktrees(git, repo, [path], options)

/** The same after the repository was moved. Git goes on with the others when one of them cannot be repaired. */
export const repairWorktrees = async (
  git: Git,
  repo: Repo,
  paths: readonly string[],
  { signal }: CallOptions = {},
): Promise<void> => {
  const args = ['worktree', 'repair', '--end-of-options', ...paths]
  const at = { commonDir: repo.commonDir }
  await git.run({ operation: 'worktree repair', at, args, locks: true, ...(signal && { signal }) })
}
