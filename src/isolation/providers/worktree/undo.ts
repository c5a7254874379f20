import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { type AdminDir, clearLock } from '../../../git/admin-dir.ts'
import { forgetWorktree } from '../../../git/worktree-forget.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { endScripts, settleChild } from '../../children.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import type { IsolationContext } from '../../context.ts'
import { treeAt } from './presence.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { saveStrangersWork } from '../checkout/salvage-creation.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import { findDirectory, findRecord, isWholeRecord, leaveToUser, pathsOf, wasTaken } from './making-left.ts'
import { type MakingLeft, readMakingData } from '../checkout/making.ts'
import { discard, endMaking, holdsOthers, removeIfEmpty } from '../checkout/unmake.ts'
import type { Undone } from '../checkout/kind.ts'
import { keeping } from './keeping.ts'
import { removeStaleLocks } from './stale-locks.ts'

/**
 * Takes back exactly what one creation, restore or spare made, and nothing it had not made. Doing it twice is doing
 * it once. After a crash somebody may have found the half-made directory and worked in it: that work is saved first.
 */
export const undoMaking = async (
  context: IsolationContext,
  codebase: Codebase,
  entryId: string,
  when: 'just-made' | 'after-crash',
): Promise<Undone> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return { outcome: 'undone' }
  const data = readMakingData(entry)
  // What failed in this very process has awaited all its children.
  const running = when === 'just-made' ? undefined : await settleChild(context, codebase.repoPath, entry)
  if (running !== undefined) return { outcome: 'left', detail: running }
  if (!(await endScripts(context, entry))) {
    return { outcome: 'left', detail: 'a process that its setup started is still running' }
  }
  const admin = await findRecord(codebase, entry, data)
  if (admin === 'cannot-tell') return { outcome: 'left', detail: 'another git process is using the repository' }
  const { branch, ownBranch } = data
  await removeStaleLocks(codebase, entry, { branch, adminDir: admin?.dir })
  const saved = await takeBack(context, codebase, entry, data, admin, when)
  for (const path of pathsOf(data)) await removeIfEmpty(path)
  if (branch !== undefined && saved !== 'cannot-keep') await dropBranch(context, codebase, branch, data.start)
  if (ownBranch !== undefined) await dropBranch(context, codebase, ownBranch.name, ownBranch.tip)
  await context.failpoint('undo.branch')
  await endMaking(context, entry, saved)
  return { outcome: 'undone' }
}

/** The directory goes to the trash and git's record is forgotten, unless somebody's work is in it that cannot be kept. */
const takeBack = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  data: MakingLeft,
  found: AdminDir | undefined,
  when: 'just-made' | 'after-crash',
): Promise<'nothing' | 'saved' | 'cannot-keep'> => {
  if (found !== undefined && (await wasTaken(found, pathsOf(data)))) {
    await leaveToUser(found.dir)
    return 'cannot-keep'
  }
  const path = await findDirectory(found, data)
  const admin = found !== undefined && (await isWholeRecord(found.dir)) ? found : undefined
  // Nobody can have committed through half a record, and git stumbles over it: it goes before git is asked anything.
  if (found !== undefined && admin === undefined) await removeHalfRecord(found.dir)
  let saved: 'nothing' | 'saved' | 'cannot-keep' = 'nothing'
  if (path !== undefined) {
    const tree = treeAt(codebase, admin?.dir ?? join(codebase.repoPath, 'worktrees', data.leaf), path)
    saved = (await holdsOthers(context, [tree.path, ...(admin === undefined ? [] : [admin.dir])], tree))
      ? 'cannot-keep'
      : 'nothing'
    if (saved === 'nothing' && when === 'after-crash')
      saved = await saveStrangersWork(context, keeping, codebase, entry, tree, data.start)
    if (saved === 'cannot-keep') {
      if (admin !== undefined) await clearLock(admin.dir)
      return saved
    }
    await context.failpoint('undo.saved')
    await discard(context, path, entry.environmentId ?? entry.id)
    await context.failpoint('undo.discarded')
  }
  if (admin !== undefined) await forgetRecord(context, codebase, admin)
  await context.failpoint('undo.forgotten')
  return saved
}

const forgetRecord = async (context: IsolationContext, codebase: Codebase, admin: AdminDir): Promise<void> => {
  // The record is ours by its reason or its token, so the lock on it is too.
  await clearLock(admin.dir)
  await forgetWorktree(context.git, repoOf(codebase), admin).catch(async (error: unknown) => {
    // Whatever else went wrong, a record that is whole may be somebody's by now.
    if (await isWholeRecord(admin.dir)) throw error
    await removeHalfRecord(admin.dir)
  })
}

/** A record that git itself cannot read: only the files that `git worktree add` writes, then the empty directory. */
const halfRecordFiles = [
  'HEAD',
  'ORIG_HEAD',
  'commondir',
  'gitdir',
  'locked',
  'index',
  'index.lock',
  'HEAD.lock',
  'coppice',
]

const removeHalfRecord = async (dir: string): Promise<void> => {
  for (const name of halfRecordFiles) await rm(join(dir, name), { force: true })
  for (const name of ['logs', 'refs']) await deleteTree(join(dir, name))
  await removeIfEmpty(dir)
}
