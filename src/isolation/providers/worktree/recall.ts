import { basename, dirname, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { toEnvironmentId, toRepoPath } from '../../../domain/names.ts'
import { readAdminDir, readToken, readWorktreeLink } from '../../../git/admin-dir.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { lstatIfThere } from '../../../process/files/lstat-if-there.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { isInternal, managedRoot } from '../../paths.ts'
import type { Identified, RecallRequest } from '../../provider.ts'
import { insertRecalled, recalledRow } from '../../lost/recalled-row.ts'
import { contentTrust } from '../checkout/content-trust.ts'
import { creationReason, spareToken } from './lock-reasons.ts'

/** By git's record and the directory, which must name each other, and by our token in the record. */
export const identifyWorktree = async (
  { host }: Pick<IsolationContext, 'host'>,
  path: string,
): Promise<Identified | undefined> => {
  if (isInternal(path) || lstatIfThere(join(path, '.git'))?.isFile() !== true) return undefined
  const dir = await readWorktreeLink(path)
  const record = dir === undefined ? undefined : await readAdminDir(dir)
  if (record === undefined || record.worktreePath !== path || basename(dirname(record.dir)) !== 'worktrees') {
    return undefined
  }
  const token = await readToken(record.dir)
  const isUnfinished = record.lockReason?.startsWith(creationReason('')) === true
  if (token === undefined || token.startsWith(spareToken('')) || isUnfinished) return undefined
  if ((await managedRoot(path, host)) === undefined) return undefined
  const repoPath = dirname(dirname(record.dir))
  return { id: toEnvironmentId(token), tree: { path, gitDir: record.dir, commonDir: toRepoPath(repoPath) }, repoPath }
}

export const recallWorktree = async (
  context: IsolationContext,
  codebase: Codebase,
  { tree }: Identified,
  request: RecallRequest,
): Promise<IsolatedEnvironment> =>
  locked(context, codebase, 'recalling a worktree', async () => {
    const found = await identifyWorktree(context, tree.path)
    const record = found && (await readAdminDir(found.tree.gitDir))
    if (found === undefined || record === undefined || found.repoPath !== codebase.repoPath) {
      throw new AppError('not-adoptable', `${tree.path} is no longer a worktree of ${codebase.name}`)
    }
    const branch = record.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
    const row = recalledRow(context, codebase, found, request, {
      provider: 'worktree',
      adminName: record.name,
      branch,
    })
    // Its row would have said so. A stranger's pull request must not become our own by losing it.
    const tip = await resolveCommit(context.git, repoOf(codebase), `refs/heads/${row.branch}`)
    const content = tip && (await contentTrust(context, codebase, { tip, branch: row.branch, gitDir: record.dir }))
    if (content?.trust !== 'own') {
      throw new AppError('not-adoptable', `the commits of ${row.branch} aren't proven to be the repository's own`)
    }
    return insertRecalled(context, row, request)
  })
