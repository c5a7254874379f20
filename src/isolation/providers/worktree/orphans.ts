import { existsSync } from 'node:fs'
import type { Codebase } from '../../../domain/environment.ts'
import { readAdminDirs } from '../../../git/admin-dir.ts'
import { withoutCopied } from '../../codebases/copied-records.ts'
import type { IsolationContext } from '../../context.ts'
import { otherHomeOf } from './other-home.ts'
import type { Orphan } from '../../provider.ts'
import { isInternal } from '../../paths.ts'

/** Compares git's list with our rows. Starts no process. */
export const orphanedWorktrees = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<Orphan[]> => {
  const { store, host } = context
  const records = await readAdminDirs(codebase.repoPath)
  // Read git's records first: a worktree being created is then in the store, not between the two.
  const live = (await store.environments.live(codebase.id)).filter((environment) => environment.host === host)
  const spares = (await store.spares.list(codebase.id)).filter((spare) => spare.host === host)
  const paths = new Set([...live, ...spares].map(({ path }) => path))
  // Also by name: a record of ours may be broken, or the worktree moved.
  const names = new Set([...live, ...spares].map(({ adminName }) => adminName))
  const own = await withoutCopied(records)
  const found: Orphan[] = []
  for (const { name, dir, worktreePath, head, lockReason } of own) {
    // Git can't use a worktree without a HEAD.
    if (
      worktreePath === undefined ||
      head === undefined ||
      names.has(name) ||
      paths.has(worktreePath) ||
      isInternal(worktreePath)
    )
      continue
    const otherHome = await otherHomeOf(context, worktreePath, dir)
    found.push({
      path: worktreePath,
      branch: 'branch' in head ? head.branch : undefined,
      ...(lockReason !== undefined && { locked: lockReason }),
      ...(!existsSync(worktreePath) && { missing: true as const }),
      ...(otherHome !== undefined && { otherHome }),
    })
  }
  return found
}
