import { existsSync } from 'node:fs'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { type AdminDir, readAdminDirs, readHead } from '../../../git/admin-dir.ts'
import type { Spare } from '../../../store/store.ts'
import { withoutCopied } from '../../codebases/copied-records.ts'
import type { IsolationContext } from '../../context.ts'
import { otherHomeOf } from './other-home.ts'
import type { GitWorktree } from '../../provider.ts'
import { isInternal } from '../../paths.ts'

/** What `git worktree list` shows, each with what it is to us. Starts no process. */
export const listedWorktrees = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<GitWorktree[]> => {
  const { store, host } = context
  const records = await readAdminDirs(codebase.repoPath)
  // Read git's records first: a worktree being created is then in the store, not between the two.
  const live = (await store.environments.live(codebase.id)).filter((environment) => environment.host === host)
  const spares = (await store.spares.list(codebase.id)).filter((spare) => spare.host === host)
  const own = new Set(await withoutCopied(records))
  const found: GitWorktree[] = [await mainWorktree(codebase)]
  for (const record of records) {
    const { dir, worktreePath: path, head, lockReason } = record
    if (path === undefined) continue
    const tracked = trackedAs(record, { live, spares, isCopied: !own.has(record) })
    const otherHome = tracked === undefined ? await otherHomeOf(context, path, dir) : undefined
    found.push({
      path,
      branch: head !== undefined && 'branch' in head ? head.branch : undefined,
      ...(lockReason !== undefined && { locked: lockReason }),
      ...(!existsSync(path) && { missing: true as const }),
      ...(otherHome !== undefined && { otherHome }),
      ...(tracked !== undefined && { tracked }),
    })
  }
  return found
}

const mainWorktree = async ({ checkoutPath, repoPath }: Codebase): Promise<GitWorktree> => {
  const head = await readHead(repoPath).catch(() => undefined)
  return {
    path: checkoutPath ?? repoPath,
    branch: checkoutPath !== undefined && head !== undefined && 'branch' in head ? head.branch : undefined,
    tracked: { as: 'main' },
  }
}

/** Also by name: a record of ours may be broken, or the worktree moved. */
const trackedAs = (
  { name, worktreePath, head }: AdminDir,
  {
    live,
    spares,
    isCopied,
  }: { readonly live: readonly IsolatedEnvironment[]; readonly spares: readonly Spare[]; readonly isCopied: boolean },
): GitWorktree['tracked'] => {
  const isIt = (row: { readonly adminName: string | undefined; readonly path: string }): boolean =>
    row.adminName === name || row.path === worktreePath
  const environment = live.find(isIt)
  if (isCopied) return { as: 'copy' }
  if (environment !== undefined) return { as: 'environment', environment }
  if (spares.some(isIt) || (worktreePath !== undefined && isInternal(worktreePath))) return { as: 'spare' }
  // Git can't use a worktree without a HEAD.
  return head === undefined ? { as: 'broken' } : undefined
}
