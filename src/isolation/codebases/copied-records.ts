import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { type AdminDir, readAdminDirs, readWorktreeLink } from '../../git/admin-dir.ts'

/**
 * A repository that was copied (`cp -r`) has records of the original's worktrees. Adopting one of them is refused, and
 * `git worktree repair` would take it away from the original.
 */
export const copiedRecords = async (codebase: Codebase): Promise<AdminDir[]> => {
  const records = await readAdminDirs(codebase.repoPath)
  const own = new Set(await withoutCopied(records))
  return records.filter((record) => !own.has(record))
}

export const withoutCopied = async (records: readonly AdminDir[]): Promise<AdminDir[]> => {
  const copied = await Promise.all(records.map(isCopied))
  return records.filter((_, i) => copied[i] !== true)
}

/** The directory's own link leads to a record of the same name in another repository. */
export const isCopied = async ({ dir, name, worktreePath }: AdminDir): Promise<boolean> => {
  const link = worktreePath === undefined ? undefined : await readWorktreeLink(worktreePath).catch(() => undefined)
  // The link is fully resolved; our own path may contain a symlink.
  return link !== undefined && link !== (await realpath(dir)) && basename(link) === name && existsSync(link)
}
