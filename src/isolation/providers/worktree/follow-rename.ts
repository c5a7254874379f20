import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { readHead } from '../../../git/admin-dir.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { FollowedRename } from '../../provider.ts'
import { followRename, type FollowOptions } from '../checkout/follow-rename.ts'
import { presenceOf } from './presence.ts'

/** Starts no process if nothing was renamed. One that can't be inspected stays as recorded. */
export const followRenames = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'host'>,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  options: FollowOptions = {},
): Promise<FollowedRename[]> =>
  Promise.all(
    environments.map(async (environment) => {
      const unchanged: FollowedRename = { environment, notices: [] }
      const { adminName, host, status } = environment
      if (adminName === undefined || host !== context.host || status !== 'active') return unchanged
      const gitDir = join(codebase.repoPath, 'worktrees', adminName)
      try {
        const head = await readHead(gitDir)
        if (head === undefined || !('branch' in head) || head.branch === environment.branch) return unchanged
        if ((await presenceOf(codebase, environment)).state !== 'present') return unchanged
        return await followRename(context, codebase, environment, { ...repoOf(codebase), gitDir }, options)
      } catch (error) {
        context.log.info('a renamed branch could not be followed', { branch: environment.branch, error })
        return unchanged
      }
    }),
  )
