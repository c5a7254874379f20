import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toRepoPath } from '../../domain/names.ts'
import { lastValue } from '../../git/config-entries.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { shellWord } from '../../domain/text/shell-word.ts'

/**
 * A `git push` that works as printed: our branches have no upstream, so git refuses a bare `git push`. Only a pull
 * request's own branch is pushed under another name.
 */
export const pushCommand = async (
  context: Pick<IsolationContext, 'git'>,
  { repoPath, remote }: Codebase,
  { branch, prBranch }: IsolatedEnvironment,
): Promise<string | undefined> => {
  if (remote === undefined) return undefined
  const entries = await context.git.config({ commonDir: toRepoPath(repoPath) })
  const upstream = lastValue(entries, `branch.${branch}.merge`)
  if (upstream === `refs/heads/${branch}`) return 'push'
  if (prBranch !== undefined && upstream === `refs/heads/${prBranch}`) {
    return `push ${shellWord(remote)} ${shellWord(`HEAD:${prBranch}`)}`
  }
  return `push -u ${shellWord(remote)} ${shellWord(branch)}`
}
