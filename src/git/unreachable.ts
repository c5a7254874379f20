import { AppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { Git, Repo, Tree } from './door.ts'

/**
 * How many commits these revisions have that no branch, tag or remote-tracking ref has. Our own `refs/coppice/*` do not
 * count: they go when their time is over.
 */
export const countUnreachable = async (git: Git, at: Repo | Tree, revs: readonly string[]): Promise<number> => {
  const args = ['rev-list', '--count', ...revs, '--not', '--branches', '--tags', '--remotes', '--']
  const { stdout } = await git.run({ operation: 'rev-list', at, args })
  return Number(stdout.trim())
}

/** Of these commits, those that no branch, tag or remote-tracking ref has. */
export const unreachableAmong = async (git: Git, at: Repo | Tree, shas: readonly Sha[]): Promise<Sha[]> => {
  const wanted = new Set<string>(shas)
  const args = ['rev-list', '--stdin', '--not', '--branches', '--tags', '--remotes', '--']
  const { stdout } = await git.run({ operation: 'rev-list', at, args, stdin: shas.map((sha) => `${sha}\n`).join('') })
  return stdout.split('\n').filter((line): line is Sha => isSha(line) && wanted.has(line))
}

/** Of these objects, those that the repository has. */
export const existingObjects = async (git: Git, repo: Repo, shas: readonly Sha[]): Promise<ReadonlySet<Sha>> => {
  const args = ['cat-file', '--batch-check=%(objectname)']
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: repo,
    args,
    stdin: shas.map((sha) => `${sha}\n`).join(''),
  })
  // "<name> missing" otherwise.
  return new Set(stdout.split('\n').filter(isSha))
}

/** How many commits any ref or HEAD has (but for refs like `except`) that these do not. */
export const commitsNotOn = async (
  git: Git,
  repo: Repo,
  shas: readonly Sha[],
  except: readonly string[],
): Promise<number> => {
  const here = await existingObjects(git, repo, shas)
  const args = ['rev-list', '--count', ...except.map((pattern) => `--exclude=${pattern}`), '--all', '--stdin']
  const stdin = [...here].map((sha) => `^${sha}\n`).join('')
  const { stdout } = await git.run({ operation: 'rev-list', at: repo, args, stdin })
  return Number(stdout.trim())
}

/** How many commits only this branch holds: what would be unreachable if it were deleted. */
export const countOnlyOnBranch = async (git: Git, repo: Repo, branch: string): Promise<number> => {
  const others = [`--exclude=${branch}`, '--branches', '--tags', '--remotes']
  const args = ['rev-list', '--count', `refs/heads/${branch}`, '--not', ...others, '--']
  const { stdout } = await git.run({ operation: 'rev-list', at: repo, args })
  return Number(stdout.trim())
}

/**
 * How many commits any ref or reflog of a repository has that no remote-tracking ref has: stashes, local tags, notes and
 * what a reset left behind included. What `pushed` leads to is known to be on a remote.
 */
export const countUnpushed = async (git: Git, repo: Repo, pushed: readonly Sha[] = []): Promise<number> => {
  const found = Number(await listUnpushed(git, repo, pushed, ['--count']))
  if (Number.isNaN(found)) throw new AppError('git-failed', 'git could not count its commits')
  return found
}

/**
 * The newest of those commits: pushing these pushes all of them. No more than `most`, for every `commit --amend` leaves
 * one in the reflog.
 */
export const unpushedTips = async (
  git: Git,
  repo: Repo,
  pushed: readonly Sha[],
  most: number,
): Promise<{ readonly tips: readonly Sha[]; readonly hasMore: boolean }> => {
  const tips: Sha[] = []
  for (;;) {
    // In this order the first one is no other one's ancestor.
    const next = await listUnpushed(git, repo, [...pushed, ...tips], ['--max-count=1', '--topo-order'])
    if (!isSha(next)) return { tips, hasMore: false }
    if (tips.length === most) return { tips, hasMore: true }
    tips.push(next)
  }
}

const listUnpushed = async (
  git: Git,
  repo: Repo,
  pushed: readonly Sha[],
  options: readonly string[],
): Promise<string> => {
  const stdin = pushed.map((sha) => `^${sha}\n`).join('')
  const list = async (revs: readonly string[]): Promise<string | undefined> => {
    const args = ['rev-list', ...options, '--ignore-missing', ...revs, '--stdin', '--not', '--remotes', '--']
    const { stdout, exitCode } = await git.run({ operation: 'rev-list', at: repo, args, stdin, ok: [0, 128] })
    return exitCode === 0 ? stdout.trim() : undefined
  }
  // An unborn HEAD is no revision: only what the refs hold. Anything else that git cannot read throws.
  const found = (await list(['--all', '--reflog', 'HEAD'])) ?? (await list(['--all', '--reflog']))
  if (found === undefined) throw new AppError('git-failed', 'git could not list its commits')
  return found
}

/** Refs at this commit, and annotated tags of it. */
export const refsAt = async (git: Git, repo: Repo, sha: Sha): Promise<string[]> => {
  const args = ['for-each-ref', `--points-at=${sha}`, '--format=%(refname)']
  const { stdout } = await git.run({ operation: 'for-each-ref', at: repo, args })
  return stdout.split('\n').filter((name) => name !== '')
}

/** Every stash, newest first: all but the newest are in the reflog alone. None where there is no `refs/stash`. */
export const stashes = async (git: Git, repo: Repo): Promise<string[]> => {
  const args = ['rev-list', '--walk-reflogs', 'refs/stash', '--']
  const { stdout, exitCode } = await git.run({ operation: 'rev-list', at: repo, args, ok: [0, 128] })
  return exitCode === 0 ? stdout.split('\n') : []
}

/** Refs outside of `refs/remotes` that lead to no commit, such as a tag on a file. Not those to `pushed` objects. */
export const refsWithoutCommits = async (git: Git, repo: Repo, pushed: readonly Sha[] = []): Promise<string[]> => {
  const known = new Set<string>(pushed)
  const args = ['for-each-ref', '--format=%(objecttype) %(*objecttype) %(refname) %(objectname)']
  const { stdout } = await git.run({ operation: 'for-each-ref', at: repo, args })
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' '))
    .filter(
      ([type, target, name = '', sha = '']) =>
        type !== 'commit' && target !== 'commit' && !name.startsWith('refs/remotes/') && !known.has(sha),
    )
    .map(([, , name = '']) => name)
}
