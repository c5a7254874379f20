import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'

/**
 * The first-parent history of `from`, at least down to the oldest of the tips, which are all in its history.
 * Two processes for any number of tips. Without the bound it would be the whole history.
 */
export const firstParentsDownTo = async (
  git: Git,
  repo: Repo,
  from: Sha,
  tips: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<ReadonlySet<Sha>> => {
  const shared = await git.run({
    operation: 'merge-base',
    at: repo,
    args: ['merge-base', '--octopus', '--end-of-options', ...new Set(tips)],
    ok: [0, 1],
    ...(signal && { signal }),
  })
  const bound = shas(shared.stdout)[0]
  const { stdout } = await git.run({
    operation: 'rev-list',
    at: repo,
    // Excludes the parents of the shared commit, not the commit itself: it may be one of the tips.
    args: ['rev-list', '--first-parent', '--end-of-options', from, ...(bound === undefined ? [] : [`^${bound}^@`])],
    ...(signal && { signal }),
  })
  return new Set(shas(stdout))
}

/** The commits that are not in the history of `from`. One process for all; a missing commit is an error. */
export const notReachableFrom = async (
  git: Git,
  repo: Repo,
  from: Sha,
  commits: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<ReadonlySet<Sha>> => {
  if (commits.length === 0) return new Set()
  const outside = new Set(await historyOutside(git, repo, commits, [from], { signal }))
  return new Set(commits.filter((sha) => outside.has(sha)))
}

/** The history of `tips` without that of `known`. A missing commit is an error. */
export const historyOutside = async (
  git: Git,
  repo: Repo,
  tips: readonly Sha[],
  known: readonly Sha[],
  { signal, limit }: CallOptions & { readonly limit?: number } = {},
): Promise<Sha[]> => {
  const { stdout } = await git.run({
    operation: 'rev-list',
    at: repo,
    args: ['rev-list', ...(limit === undefined ? [] : [`--max-count=${limit}`]), '--stdin'],
    stdin: [...new Set([...known.map((sha) => `^${sha}`), ...tips])].join('\n') + '\n',
    ...(signal && { signal }),
  })
  return shas(stdout)
}

/** The commits that have `from` in their history, without `from` itself. One process for all. */
export const descendantsOf = async (
  git: Git,
  repo: Repo,
  from: Sha,
  commits: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<ReadonlySet<Sha>> => {
  if (commits.length === 0) return new Set()
  const { stdout } = await git.run({
    operation: 'rev-list',
    at: repo,
    args: ['rev-list', '--ancestry-path', '--stdin'],
    stdin: [`^${from}`, ...new Set(commits)].join('\n') + '\n',
    ...(signal && { signal }),
  })
  const after = new Set(shas(stdout))
  return new Set(commits.filter((sha) => after.has(sha)))
}

/**
 * At most `limit` commits in the history of `tip` that are not in the history of `known`. Ignores commits in `known`
 * that this repository doesn't have: a remote may have branches that were never fetched. Throws if `tip` is missing.
 */
export const commitsOutside = async (
  git: Git,
  repo: Repo,
  tip: Sha,
  known: readonly Sha[],
  { signal, limit }: CallOptions & { readonly limit: number },
): Promise<Sha[]> => {
  const call = { at: repo, ...(signal && { signal }) }
  await git.run({ ...call, operation: 'cat-file', args: ['cat-file', '-e', `${tip}^{commit}`] })
  const { stdout } = await git.run({
    ...call,
    operation: 'rev-list',
    args: ['rev-list', '--ignore-missing', `--max-count=${limit}`, '--stdin'],
    stdin: [tip, ...new Set(known.map((sha) => `^${sha}`))].join('\n') + '\n',
  })
  return shas(stdout)
}

/** All best common ancestors: more than one after criss-cross merges, none for unrelated histories. */
export const forkPoints = async (
  git: Git,
  repo: Repo,
  a: Sha,
  b: Sha,
  { signal }: CallOptions = {},
): Promise<Sha[]> => {
  const args = ['merge-base', '--all', '--end-of-options', a, b]
  const { stdout } = await git.run({ operation: 'merge-base', at: repo, args, ok: [0, 1], ...(signal && { signal }) })
  return shas(stdout)
}

const shas = (stdout: string): Sha[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map(toSha)
