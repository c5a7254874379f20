import type { BranchName } from '../domain/names.ts'
import type { Git, Repo } from './door.ts'

/** `git push` in the environment updates the pull request. Written as data: the remote branch need not be fetched. */
export const setUpstream = async (
  git: Git,
  repo: Repo,
  branch: BranchName,
  upstream: { readonly remote: string; readonly branch: string },
): Promise<void> => {
  const set = (key: string, value: string): Promise<unknown> =>
    git.run({
      operation: 'set upstream',
      at: repo,
      args: ['config', '--local', '--replace-all', `branch.${branch}.${key}`, value],
      locks: true,
    })
  await set('remote', upstream.remote)
  await set('merge', `refs/heads/${upstream.branch}`)
}

/** Takes the branch's section out of the configuration, as `git branch -d` does. Nothing to take is fine (exit 128). */
export const dropUpstream = async (git: Git, repo: Repo, branch: string): Promise<void> => {
  await git.run({
    operation: 'drop upstream',
    at: repo,
    args: ['config', '--local', '--remove-section', `branch.${branch}`],
    locks: true,
    ok: [0, 1, 128],
  })
}
