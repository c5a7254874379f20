import { join } from 'node:path'
import { type RepoPath, toRepoPath } from '../../../../domain/names.ts'
import type { RepositoryWork } from '../../../../domain/removal/reason.ts'
import { halfDone, readAdminDirs } from '../../../../git/admin-dir.ts'
import { lastValue } from '../../../../git/config-entries.ts'
import type { Repo } from '../../../../git/door.ts'
import { readIndexState } from '../../../../git/hidden.ts'
import { readStatus } from '../../../../git/status.ts'
import { countUnpushed, refsWithoutCommits } from '../../../../git/unreachable.ts'
import type { IsolationContext } from '../../../context.ts'
import { lstatIfThere } from '../../../../process/files/lstat-if-there.ts'

/** A repository by its git directory; `path` is where its files are, unless it is bare. */
export type Checkout = { readonly gitDir: string; readonly path: string | undefined }

/** What only this repository holds; undefined if a fresh clone would bring all of it back. "Unknown" counts as work. */
export const workIn = async (
  context: Pick<IsolationContext, 'git'>,
  checkout: Checkout,
): Promise<RepositoryWork | undefined> => {
  try {
    const repo: Repo = { commonDir: toRepoPath(checkout.gitDir) }
    return (
      (await sharedWithOthers(context, checkout.gitDir, repo)) ??
      (await commitsOf(context, repo)) ??
      (await filesOf(context, checkout, repo.commonDir))
    )
  } catch (error) {
    return { kind: 'unknown', message: error instanceof Error ? error.message : String(error) }
  }
}

/** What it shares with other directories can't be judged from it alone. */
const sharedWithOthers = async (
  { git }: Pick<IsolationContext, 'git'>,
  gitDir: string,
  repo: Repo,
): Promise<RepositoryWork | undefined> => {
  const has = (name: string): boolean => lstatIfThere(join(gitDir, name)) !== undefined
  if (has('objects/info/alternates')) return { kind: 'borrows-objects' }
  if ((await readAdminDirs(gitDir)).length > 0) return { kind: 'has-worktrees' }
  // Git would fetch missing objects while we look.
  const isPartial = lastValue(await git.config(repo), 'extensions.partialclone') !== undefined
  return isPartial ? { kind: 'partial-clone' } : undefined
}

const commitsOf = async ({ git }: Pick<IsolationContext, 'git'>, repo: Repo): Promise<RepositoryWork | undefined> => {
  const [operation] = halfDone(repo.commonDir)
  if (operation !== undefined) return { kind: 'operation', operation }
  const commits = await countUnpushed(git, repo)
  if (commits > 0) return { kind: 'commits', count: commits }
  const [ref] = await refsWithoutCommits(git, repo)
  return ref === undefined ? undefined : { kind: 'ref', ref }
}

const filesOf = async (
  { git }: Pick<IsolationContext, 'git'>,
  { gitDir, path }: Checkout,
  commonDir: RepoPath,
): Promise<RepositoryWork | undefined> => {
  if (path === undefined) return undefined
  const tree = { commonDir, gitDir, path }
  const [status, index] = await Promise.all([readStatus(git, tree), readIndexState(git, tree)])
  const changed = status.changed.length + status.unmerged.length + index.hidden.length
  if (changed > 0) return { kind: 'changed', count: changed }
  return status.untracked.length > 0 ? { kind: 'untracked', count: status.untracked.length } : undefined
}
