import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { gitProcessesUsing } from '../../../process/git-processes.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { unlessMissing } from '../../../domain/missing.ts'

/**
 * A killed git leaves its lock files, and every later git refuses to run. Deletes those that an interrupted operation
 * of ours may have left: newer than the operation, and only while no git process uses the repository.
 */
export const removeStaleLocks = async (
  codebase: Codebase,
  entry: JournalEntry,
  { branch, adminDir }: { branch: string | undefined; adminDir: string | undefined },
): Promise<void> => {
  const candidates = [
    join(codebase.repoPath, 'config.lock'),
    join(codebase.repoPath, 'packed-refs.lock'),
    ...(branch === undefined ? [] : [join(codebase.repoPath, 'refs/heads', `${branch}.lock`)]),
    ...(adminDir === undefined ? [] : [join(adminDir, 'HEAD.lock'), join(adminDir, 'index.lock')]),
  ]
  const found: string[] = []
  for (const path of candidates) {
    const lock = await unlessMissing(lstat(path))
    // File times come from a coarser clock than ours and may be slightly earlier.
    if (lock !== undefined && lock.mtimeMs >= entry.startedAt - 100) found.push(path)
  }
  if (found.length === 0 || (await gitProcessesUsing(codebase.repoPath)).length > 0) return
  for (const path of found) await rm(path, { force: true })
}
