import { readdir, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { shownPath } from '../../domain/raw-path.ts'
import { type AdminDir, clearLock } from '../../git/admin-dir.ts'
import type { Tree } from '../../git/door.ts'
import { forgetWorktree } from '../../git/worktree-forget.ts'
import type { JournalEntry } from '../../store/store.ts'
import { endScripts, settleChild } from '../children.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import { mountsInside } from '../../process/files/mounts.ts'
import type { IsolationContext } from '../context.ts'
import { managedRoot } from '../paths.ts'
import { treeAt } from '../presence.ts'
import { repoOf } from '../repo-of.ts'
import { worktreesInside } from '../repositories-inside.ts'
import { walk } from '../walk.ts'
import { saveStrangersWork } from './salvage-creation.ts'
import { dropBranch } from './branch-fate.ts'
import {
  type MakingLeft,
  findDirectory,
  findRecord,
  isWholeRecord,
  leaveToUser,
  pathsOf,
  readMakingData,
  wasTaken,
} from './making-left.ts'
import { removeStaleLocks } from './stale-locks.ts'
import { discardDirectory } from './trash.ts'

export type Undone = { readonly outcome: 'undone' } | { readonly outcome: 'left'; readonly detail: string }

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
  const settled = when === 'just-made' || (await settleChild(context, codebase.repoPath, entry))
  if (!settled) return { outcome: 'left', detail: 'a git process of it is still running' }
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
  await context.store.transaction(async (store) => {
    if (entry.environmentId !== undefined) {
      await store.ports.release(entry.environmentId)
      // A row that a restore point speaks of stays, so that `restore` finds it.
      if (saved === 'saved') await store.environments.transition(entry.environmentId, 'creating', 'removed')
      else await store.environments.forgetCreating(entry.environmentId)
    }
    await store.journal.end(entry.id)
  })
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
    saved = (await holdsOthers(context, tree, admin)) ? 'cannot-keep' : 'nothing'
    if (saved === 'nothing' && when === 'after-crash')
      saved = await saveStrangersWork(context, codebase, entry, tree, data.start)
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

/** A mount or somebody's worktree inside: no restore point can hold either, so it all stays. */
const holdsOthers = async (context: IsolationContext, tree: Tree, admin: AdminDir | undefined): Promise<boolean> => {
  const mounts = await mountsInside([tree.path, ...(admin === undefined ? [] : [admin.dir])])
  const worktrees = mounts.length > 0 ? [] : await worktreesInside(tree, await walk(tree.path, context.clock()))
  const inside = [...mounts.map(({ path }) => path), ...worktrees.map(({ path }) => shownPath(path))]
  if (inside.length > 0)
    context.log.warn('a half-made worktree was left: it holds something else', { path: tree.path, inside })
  return inside.length > 0
}

const discard = async (context: IsolationContext, path: string, id: string): Promise<void> => {
  const root = basename(dirname(path)) === '.spares' ? dirname(dirname(path)) : await managedRoot(path, context.host)
  if (root === undefined) return
  context.reap([await discardDirectory(root, path, id)])
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

/** `git worktree add` makes the directory before it writes the link: empty, it is nobody's. rmdir takes no more. */
const removeIfEmpty = async (path: string): Promise<void> => {
  const names = await readdir(path).catch(() => undefined)
  if (names?.length === 0) await rmdir(path).catch(() => undefined)
}
