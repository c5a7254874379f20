import { existsSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { isAppError } from '../../../domain/errors.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import type { Sha } from '../../../domain/names.ts'
import {
  type AdminDir,
  clearLock,
  readAdminDir,
  readHead,
  readToken,
  readWorktreeLink,
} from '../../../git/admin-dir.ts'
import { indexChanges, lostCommits } from '../../../git/snapshot.ts'
import { removeWorktreeRecord } from '../../../git/worktree-remove.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { managedRoot } from '../../paths.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { leaveToUser } from './find-unfinished.ts'
import { treeAt } from './presence.ts'
import { spareReason, spareToken } from './lock-reasons.ts'

/** A spare of ours without a row: the database was lost. */
export type ForgottenSpare = {
  readonly id: string
  readonly path: string
  readonly record: AdminDir
  /** Whether its directory exists, with a link to this very record. */
  readonly isThere: boolean
}

/** Known by the token and lock in git's record, which only Coppice writes. Starts no process. */
export const forgottenSpares = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<ForgottenSpare[]> => {
  const { store, host } = context
  const names = (await unlessMissing(readdir(join(codebase.repoPath, 'worktrees')))) ?? []
  const rows = [...(await store.environments.live(codebase.id)), ...(await store.spares.list(codebase.id))]
  const known = new Set(rows.map(({ adminName }) => adminName))
  const unknown = names.filter((name) => !known.has(name))
  // One being created has a record before it has a row.
  if (unknown.length === 0 || (await store.journal.open(host, codebase.id)).length > 0) return []
  const found: ForgottenSpare[] = []
  for (const name of unknown) {
    const record = await readAdminDir(join(codebase.repoPath, 'worktrees', name))
    const spare = record && (await asSpare(record, host))
    if (spare !== undefined) found.push(spare)
  }
  return found
}

const asSpare = async (record: AdminDir, host: string): Promise<ForgottenSpare | undefined> => {
  const { dir, worktreePath: path, head, lockReason } = record
  const token = await readToken(dir)
  const id = token?.startsWith('spare:') === true ? token.slice('spare:'.length) : undefined
  if (id === undefined || token !== spareToken(id) || lockReason !== spareReason(id)) return undefined
  if (path === undefined || head === undefined || !('sha' in head)) return undefined
  // A disk that isn't mounted shows no root: its spares are unknown.
  if ((await managedRoot(path, host)) === undefined) return undefined
  if ((await unlessMissing(lstat(path))) === undefined) return { id, path, record, isThere: false }
  return (await readWorktreeLink(path)) === dir ? { id, path, record, isThere: true } : undefined
}

/** Restores the rows of those that exist; deletes git's record of one that is gone, if nobody worked in it. */
export const recallSpares = async (context: IsolationContext, codebase: Codebase): Promise<void> => {
  if ((await forgottenSpares(context, codebase)).length === 0) return
  await locked(context, codebase, 'recalling spares', async () => {
    for (const spare of await forgottenSpares(context, codebase)) await recall(context, codebase, spare)
  })
}

const recall = async (
  context: IsolationContext,
  codebase: Codebase,
  { id, path, record: { dir, name }, isThere }: ForgottenSpare,
): Promise<void> => {
  const { store, host, clock, git } = context
  const sha = isThere ? await madeAt(context, codebase, dir) : await unusedAt(context, codebase, dir)
  if (isThere && sha !== undefined) {
    await store.spares.insert({ id, host, codebaseId: codebase.id, path, adminName: name, sha, createdAt: clock() })
  }
  if (isThere && sha === undefined) {
    context.log.warn('a spare that somebody worked in was left to them', { path })
    await leaveToUser(dir)
  }
  if (isThere || sha === undefined) return
  await clearLock(dir, spareReason(id))
  await removeWorktreeRecord(git, repoOf(codebase), { dir })
}

/**
 * The commit that a spare was created at, by its record alone. Undefined if somebody committed, switched or keeps their
 * own refs in it, or if that is unknown: the record may be all that holds their work.
 */
export const madeAt = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  dir: string,
): Promise<Sha | undefined> => {
  const head = await readHead(dir)
  if (head === undefined || !('sha' in head)) return undefined
  const refs = await unlessMissing(readdir(join(dir, 'refs'), { recursive: true, withFileTypes: true }))
  if (refs?.some((entry) => !entry.isDirectory()) === true) return undefined
  const [first, ...more] = ((await readUntrustedText(join(dir, 'logs', 'HEAD'))) ?? '').trim().split('\n')
  if (more.length > 0) return undefined
  // Without a reflog (`core.logAllRefUpdates=false`): a commit on a branch or tag isn't lost with the record.
  const isOurs =
    first === ''
      ? (await lostCommits(git, repoOf(codebase), [head.sha], [])).length === 0
      : first?.split(' ')[1] === head.sha
  return isOurs ? head.sha : undefined
}

/**
 * As `madeAt`, for a spare whose directory is gone. Also undefined if somebody staged a file, which only the index has,
 * or if git can't read the index.
 */
export const unusedAt = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  dir: string,
): Promise<Sha | undefined> => {
  const sha = await madeAt(context, codebase, dir)
  if (sha === undefined || !existsSync(join(dir, 'index'))) return sha
  try {
    const changes = await indexChanges(context.git, treeAt(codebase, dir, codebase.repoPath), sha)
    return changes.length === 0 ? sha : undefined
  } catch (error) {
    if (isAppError(error)) return undefined
    throw error
  }
}

/** Drops the row of a spare whose directory and record are gone. */
export const dropLostSpares = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<void> => {
  for (const spare of await context.store.spares.list(codebase.id)) {
    if (spare.host !== context.host) continue
    // Only its own record: reading those of 1,000 environments takes longer than all the rest.
    if ((await readAdminDir(join(codebase.repoPath, 'worktrees', spare.adminName))) !== undefined) continue
    if ((await unlessMissing(lstat(spare.path))) === undefined) await context.store.spares.claim(spare.id)
  }
}
