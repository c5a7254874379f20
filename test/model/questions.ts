import type { Real } from './real.ts'
import type { Environment } from './state.ts'

/** Plain git's answers: the oracle must not ask the code under test. */
export const branchTips = ({ git, world }: Real): Map<string, string> => refsBelow({ git, world }, 'refs/heads/')

export const refsBelow = ({ git, world }: Pick<Real, 'git' | 'world'>, prefix: string): Map<string, string> => {
  const listed = git(world.repo.path, 'for-each-ref', '--format=%(refname) %(objectname)', prefix)
  return new Map(
    listed
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [name = '', sha = ''] = line.split(' ')
        return [name.slice(prefix.length), sha]
      }),
  )
}

/** In the history of the bare origin's main; one that origin has never seen is not. */
export const isOnMain =
  ({ git, world }: Real) =>
  (sha: string): boolean => {
    try {
      git(world.box.path('origin.git'), 'merge-base', '--is-ancestor', sha, 'main')
      return true
    } catch {
      return false
    }
  }

export const isDirty = ({ git }: Real, { path, away }: Environment): boolean =>
  away === undefined && git(path, 'status', '--porcelain') !== ''

/** HEAD is on no branch, and no ref has its commit. */
export const isUnreachable = ({ git }: Real, { path, away, snapshot }: Environment): boolean => {
  if (away !== undefined || snapshot.branch !== undefined) return false
  return git(path, 'rev-list', '-1', 'HEAD', '--not', '--branches', '--remotes', '--tags') !== ''
}
