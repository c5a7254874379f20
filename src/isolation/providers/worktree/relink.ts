import { basename, join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import { linkedGitDirectory, maxLineBytes } from '../../../domain/git-link.ts'
import { readAdminDir, readWorktreeLink } from '../../../git/admin-dir.ts'
import { pointWorktreeAtRecord, pointRecordAtWorktree } from '../../../git/worktree-repair.ts'
import { readUntrustedTextSync } from '../../../process/files/read-untrusted.ts'
import type { IsolationContext } from '../../context.ts'
import { moveBeadsRedirect } from '../checkout/provision/beads.ts'

/** Each worktree's `.git` file names the repository by path. Updates only those that named this one. */
export const relink = async (
  context: Pick<IsolationContext, 'store' | 'log' | 'host'>,
  from: Codebase,
  to: Codebase,
): Promise<void> => {
  const { store, host, log } = context
  const live = (await store.environments.live(from.id)).filter((environment) => environment.host === host)
  const spares = (await store.spares.list(from.id)).filter((spare) => spare.host === host)
  for (const { path, adminName } of [...live, ...spares]) {
    try {
      const named = linkedGitDirectory(readUntrustedTextSync(join(path, '.git'), { maxBytes: maxLineBytes }))
      if (named === undefined) continue
      const record = join(to.repoPath, 'worktrees', basename(named))
      // A dangling link reads as none. One to another repository stays.
      const leads = await readWorktreeLink(path)
      if ((leads !== undefined && leads !== record) || (await readAdminDir(record)) === undefined) continue
      pointWorktreeAtRecord(path, record)
      if (adminName === undefined || adminName === basename(record)) pointRecordAtWorktree(record, path)
    } catch (error) {
      // Those not there now are missing; `doctor` says what each of the others needs.
      log.warn('a worktree of a moved repository could not be linked again', { path, error: toAppError(error).message })
    }
  }
  for (const { path } of live) await moveBeadsRedirect(path, from.checkoutPath, to.checkoutPath)
}
