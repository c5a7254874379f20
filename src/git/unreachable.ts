import { AppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { Git, Repo, Tree } from './door.ts'

/**
 * How many commits of these revisions no branch, tag or remote-tracking ref has. Our own `refs/coppice/*` don't count:
 * they expire.
 */
export const countUnreachable = async (git: Git, at: Repo | Tree, revs: readonly string[]): Promise<number> => {
  const args = ['rev-list', '--count', ...revs, '--not', '--branches', '--tags', '--remotes', '--']
  const { stdout } = await git.run({ operation: 'rev-list', at, args })
  return Number(stdout.trim())
}

/** Those commits that no branch, tag or remote-tracking ref has. */
export const unreachableAmong = async (git: Git, at: Repo | Tree, shas: readonly Sha[]): Promise<Sha[]> => {
  const wanted = new Set<string>(shas)
  const args = ['rev-list', '--stdin', '--not', '--branches', '--tags', '--remotes', '--']
  const { stdout } = await git.run({ operation: 'rev-list', at, args, stdin: shas.map((sha) => `${sha}\n`).join('') })
  return stdout.split('\n').filter((line): line is Sha => isSha(line) && wanted.has(line))
}

/** Those objects that the repository has. */
export const existingObjects = async (git: Git, repo: Repo, shas: readonly Sha[]): Promise<ReadonlySet<Sha>> => {
  const args = ['cat-file', '--batch-check=%(objectname)']
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: repo,
    args,
    stdin: shas.map((sha) => `${sha}\n`).join(''),
  })
  // Other lines: "<name> missing".
  return new Set(stdout.split('\n').filter(isSha))
}

/** How many commits any ref or HEAD (except refs matching `except`) has that `shas` don't. */
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

/** How many commits only this branch has: deleting it would make them unreachable. */
export const countOnlyOnBranch = async (git: Git, repo: Repo, branch: string): Promise<number> => {
  const others = [`--exclude=${branch}`, '--branches', '--tags', '--remotes']
  const args = ['rev-list', '--count', `refs/heads/${branch}`, '--not', ...others, '--']
  const { stdout } = await git.run({ operation: 'rev-list', at: repo, args })
  return Number(stdout.trim())
}

/**
 * How many commits any ref or reflog has that no remote-tracking ref has, including stashes, local tags, notes and what
 * a reset left behind. `pushed` commits are known to be on a remote.
 */
export const countUnpushed = async (git: Git, repo: Repo, pushed: readonly Sha[] = []): Promise<number> => {
  const found = Number(await listUnpushed(git, repo, pushed, ['--count']))
  if (Number.isNaN(found)) throw new AppError('git-failed', "couldn't count the repository's commits")
  return found
}

/**
 * The newest of those commits: pushing these pushes all. At most `max`, since every `commit --amend` leaves one in the
 * reflog.
 */
export const unpushedTips = async (
  git: Git,
  repo: Repo,
  pushed: readonly Sha[],
  max: number,
): Promise<{ readonly tips: readonly Sha[]; readonly hasMore: boolean }> => {
  const tips: Sha[] = []
  for (;;) {
    // In this order, no other commit descends from the first.
    const next = await listUnpushed(git, repo, [...pushed, ...tips], ['--max-count=1', '--topo-order'])
    if (!isSha(next)) return { tips, hasMore: false }
    if (tips.length === max) return { tips, hasMore: true }
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
  // An unborn HEAD isn't a revision: then only the refs count. Any other failure throws.
  const found = (await list(['--all', '--reflog', 'HEAD'])) ?? (await list(['--all', '--reflog']))
  if (found === undefined) throw new AppError('git-failed', "couldn't list the repository's commits")
  return found
}

/** Refs at this commit, including annotated tags. */
export const refsAt = async (git: Git, repo: Repo, sha: Sha): Promise<string[]> => {
  const args = ['for-each-ref', `--points-at=${sha}`, '--format=%(refname)']
  const { stdout } = await git.run({ operation: 'for-each-ref', at: repo, args })
  return stdout.split('\n').filter((name) => name !== '')
}

/** Every stash, newest first: all but the newest are only in the reflog. Empty without `refs/stash`. */
export const stashes = async (git: Git, repo: Repo): Promise<string[]> => {
  const args = ['rev-list', '--walk-reflogs', 'refs/stash', '--']
  const { stdout, exitCode } = await git.run({ operation: 'rev-list', at: repo, args, ok: [0, 128] })
  return exitCode === 0 ? stdout.split('\n') : []
}

/** Refs outside `refs/remotes` that don't lead to a commit, such as a tag on a file, except to `pushed` objects. */
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
