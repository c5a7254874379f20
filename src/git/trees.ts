import { AppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'

/** The tree of each commit, in one process. */
export const treesOf = async (
  git: Git,
  repo: Repo,
  commits: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<ReadonlyMap<Sha, Sha>> => {
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: repo,
    args: ['cat-file', '--batch-check=%(objectname)'],
    stdin: commits.map((sha) => `${sha}^{tree}\n`).join(''),
    ...(signal && { signal }),
  })
  const lines = stdout.split('\n')
  return new Map(
    commits.map((sha, i): [Sha, Sha] => {
      const tree = lines[i] ?? ''
      // Otherwise "<name> missing".
      if (!isSha(tree)) throw new AppError('git-failed', `couldn't read commit ${sha}`)
      return [sha, tree]
    }),
  )
}
