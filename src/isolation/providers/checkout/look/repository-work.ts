import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { unlessMissingSync } from '../../../../domain/missing.ts'
import { type RepoPath, toRepoPath } from '../../../../domain/names.ts'
import { counted } from '../../../../domain/words.ts'
import { halfDone, readAdminDirs } from '../../../../git/admin-dir.ts'
import { lastValue } from '../../../../git/config-entries.ts'
import type { Repo } from '../../../../git/door.ts'
import { readIndexState } from '../../../../git/hidden.ts'
import { readStatus } from '../../../../git/status.ts'
import { countUnpushed, refsWithoutCommits } from '../../../../git/unreachable.ts'
import type { IsolationContext } from '../../../context.ts'
import { inProgress } from '../../../../domain/removal/reason.ts'

/** A repository by its git directory; `path` is where its files are, unless it is bare. */
export type Checkout = { readonly gitDir: string; readonly path: string | undefined }

/**
 * What a repository holds that nothing else has, in words; undefined when a fresh clone would bring all of it back.
 * Whatever cannot be answered counts as work.
 */
export const workIn = async (
  context: Pick<IsolationContext, 'git'>,
  checkout: Checkout,
): Promise<string | undefined> => {
  try {
    const repo: Repo = { commonDir: toRepoPath(checkout.gitDir) }
    return (
      (await sharedWithOthers(context, checkout.gitDir, repo)) ??
      (await commitsOf(context, repo)) ??
      (await filesOf(context, checkout, repo.commonDir))
    )
  } catch (error) {
    return `unknown: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** What it shares with other directories cannot be judged by looking at it alone. */
const sharedWithOthers = async (
  { git }: Pick<IsolationContext, 'git'>,
  gitDir: string,
  repo: Repo,
): Promise<string | undefined> => {
  const has = (name: string): boolean => unlessMissingSync(() => lstatSync(join(gitDir, name))) !== undefined
  if (has('objects/info/alternates')) return 'it borrows objects from another repository'
  if ((await readAdminDirs(gitDir)).length > 0) return 'it has worktrees of its own'
  // Git would fetch what is missing while we look.
  const isPartial = lastValue(await git.config(repo), 'extensions.partialclone') !== undefined
  return isPartial ? 'it is a partial clone' : undefined
}

const commitsOf = async ({ git }: Pick<IsolationContext, 'git'>, repo: Repo): Promise<string | undefined> => {
  const [operation] = halfDone(repo.commonDir)
  if (operation !== undefined) return inProgress(operation)
  const commits = await countUnpushed(git, repo)
  if (commits > 0) return `${counted(commits, 'commit')} on no remote`
  const [ref] = await refsWithoutCommits(git, repo)
  return ref === undefined ? undefined : `${ref} is on no remote`
}

const filesOf = async (
  { git }: Pick<IsolationContext, 'git'>,
  { gitDir, path }: Checkout,
  commonDir: RepoPath,
): Promise<string | undefined> => {
  if (path === undefined) return undefined
  const tree = { commonDir, gitDir, path }
  const [status, index] = await Promise.all([readStatus(git, tree), readIndexState(git, tree)])
  const changed = status.changed.length + status.unmerged.length + index.hidden.length
  if (changed > 0) return `${counted(changed, 'file')} changed`
  return status.untracked.length > 0 ? `${status.untracked.length} untracked` : undefined
}
