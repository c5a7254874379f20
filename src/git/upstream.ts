import type { BranchName } from '../domain/names.ts'
import { splitKey } from './config-entries.ts'
import type { Git, Repo } from './door.ts'

/** A branch's own settings in the repository's configuration: `remote`, `merge`, `description` and others. */
export type BranchSettings = readonly (readonly [variable: string, value: string])[]

export const branchSettings = async (git: Git, repo: Repo, branch: string): Promise<BranchSettings> =>
  (await git.config(repo)).flatMap(({ scope, key, value }) => {
    const { section, subsection, variable } = splitKey(key)
    // A key without a value means true.
    return scope === 'local' && section === 'branch' && subsection === branch ? [[variable, value ?? 'true']] : []
  })

/** Makes `git push` in the worktree update the pull request. The remote branch needn't have been fetched. */
export const upstreamSettings = (upstream: { readonly remote: string; readonly branch: string }): BranchSettings => [
  ['remote', upstream.remote],
  ['merge', `refs/heads/${upstream.branch}`],
]

/** Overwrites the branch's settings: a variable with several values gets exactly those. */
export const writeBranchSettings = async (
  git: Git,
  repo: Repo,
  branch: BranchName,
  settings: BranchSettings,
): Promise<void> => {
  const written = new Set<string>()
  for (const [variable, value] of settings) {
    const how = written.has(variable) ? '--add' : '--replace-all'
    written.add(variable)
    await git.run({
      operation: 'restore branch settings',
      at: repo,
      args: ['config', '--local', how, `branch.${branch}.${variable}`, value],
      locks: true,
    })
  }
}

/** Removes the branch's section from the configuration, like `git branch -d`. A missing section is fine (exit 128). */
export const dropUpstream = async (git: Git, repo: Repo, branch: string): Promise<void> => {
  if ((await branchSettings(git, repo, branch)).length === 0) return
  await git.run({
    operation: 'drop upstream',
    at: repo,
    args: ['config', '--local', '--remove-section', `branch.${branch}`],
    locks: true,
    ok: [0, 1, 128],
  })
}
