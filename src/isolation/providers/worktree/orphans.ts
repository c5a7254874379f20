import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { type AdminDir, readAdminDirs, readWorktreeLink } from '../../../git/admin-dir.ts'
import type { IsolationContext } from '../../context.ts'
import { type OtherHome, otherHomeOf } from './other-home.ts'
import { isInternal } from '../../paths.ts'

/** A linked worktree of the repository that no live record knows: a person's, or another tool's. Never deleted. */
export type Orphan = {
  readonly path: string
  readonly branch: string | undefined
  /** The reason git has for its lock; may be empty. */
  readonly locked?: string
  /** Its directory is gone. */
  readonly missing?: true
  /** Coppice made it with another home, which may delete it. */
  readonly otherHome?: OtherHome
}

/** Git's own list against the records. Starts no program. */
export const orphans = async (context: IsolationContext, codebase: Codebase): Promise<Orphan[]> => {
  const { store, host } = context
  const records = await readAdminDirs(codebase.repoPath)
  // The records of git first: a worktree that is being made is then in the store, not between the two.
  const live = (await store.environments.live(codebase.id)).filter((environment) => environment.host === host)
  const spares = (await store.spares.list(codebase.id)).filter((spare) => spare.host === host)
  const paths = new Set([...live, ...spares].map(({ path }) => path))
  // By its name too: a record of ours may be broken, or say where somebody has moved the worktree.
  const names = new Set([...live, ...spares].map(({ adminName }) => adminName))
  const own = await withoutCopied(records)
  const found: Orphan[] = []
  for (const { name, dir, worktreePath, head, lockReason } of own) {
    // Without a HEAD it is no worktree that git could use.
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

/**
 * A repository that was copied (`cp -r`) has records of worktrees that belong to the original. To adopt one of them is
 * refused, and `git worktree repair` would take it away from the original.
 */
export const copiedRecords = async (codebase: Codebase): Promise<AdminDir[]> => {
  const records = await readAdminDirs(codebase.repoPath)
  const own = new Set(await withoutCopied(records))
  return records.filter((record) => !own.has(record))
}

const withoutCopied = async (records: readonly AdminDir[]): Promise<AdminDir[]> => {
  const copied = await Promise.all(records.map(isCopied))
  return records.filter((_, i) => copied[i] !== true)
}

/** The directory's own link leads to a record of the same name in another repository. */
export const isCopied = async ({ dir, name, worktreePath }: AdminDir): Promise<boolean> => {
  const link = worktreePath === undefined ? undefined : await readWorktreeLink(worktreePath).catch(() => undefined)
  // The link is read to its end; our own path may lead through another one.
  return link !== undefined && link !== (await realpath(dir)) && basename(link) === name && existsSync(link)
}
