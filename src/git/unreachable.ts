import type { Git, Repo, Tree } from './door.ts'

/**
 * How many commits these revisions have that no branch, tag or remote-tracking ref has. For `--branches`: that are
 * on no tag and no remote. Our own `refs/coppice/*` do not count: they go when their time is over.
 */
export const countUnreachable = async (git: Git, at: Repo | Tree, revs: readonly string[]): Promise<number> => {
  const kept = revs.includes('--branches') ? ['--tags', '--remotes'] : ['--branches', '--tags', '--remotes']
  const args = ['rev-list', '--count', ...revs, '--not', ...kept, '--']
  const { stdout } = await git.run({ operation: 'rev-list', at, args })
  return Number(stdout.trim())
}

/** How many commits only this branch holds: what would be unreachable if it were deleted. */
export const countHeldOnlyBy = async (git: Git, repo: Repo, branch: string): Promise<number> => {
  const others = [`--exclude=${branch}`, '--branches', '--tags', '--remotes']
  const args = ['rev-list', '--count', `refs/heads/${branch}`, '--not', ...others, '--']
  const { stdout } = await git.run({ operation: 'rev-list', at: repo, args })
  return Number(stdout.trim())
}
