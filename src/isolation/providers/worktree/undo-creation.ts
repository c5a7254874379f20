import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../../../domain/missing.ts'
import type { Tree } from '../../../domain/tree.ts'
import { type AdminDir, clearLock, readWorktreeLink } from '../../../git/admin-dir.ts'
import { removeWorktreeRecord } from '../../../git/worktree-remove.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import type { IsolationContext } from '../../context.ts'
import { treeAt } from './presence.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { saveOthersWork } from '../checkout/salvage-creation.ts'
import { saveRecord } from '../checkout/salvage-record.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import { findDirectory, findRecord, isWholeRecord, leaveToUser, pathsOf, wasTaken } from './find-unfinished.ts'
import {
  holdsOthers,
  isBeingDiscarded,
  isEmptyDirectory,
  isNotUndone,
  removeIfEmpty,
  saveAndDiscard,
  savedBefore,
  whoUses,
} from '../checkout/discard-creation.ts'
import type { NotUndone, Salvaged, CreationUndo, UndoSteps } from '../checkout/kind.ts'
import { restorePointSource } from './restore-point-source.ts'
import { removeStaleLocks } from './stale-locks.ts'

export const undoSteps: UndoSteps = {
  stillRunning: async () => undefined,
  paths: pathsOf,
  takeBack: async (context, undoing) => {
    const { codebase, entry, data } = undoing
    // Once discarded, anything at its path is somebody else's, even with the same inode.
    const known = isBeingDiscarded(entry) ? { ...data, directory: undefined } : data
    const admin = await findRecord(codebase, entry, known)
    if (admin === 'cannot-tell') return { left: { kind: 'git-running' } }
    await removeStaleLocks(codebase, entry, { branch: data.branch, adminDir: admin?.dir })
    return takeBack(context, undoing, admin)
  },
  dropRefs: async (context, { codebase, data: { branch, start, ownBranch } }, saved) => {
    if (branch !== undefined && saved !== 'cannot-keep') await dropBranch(context, codebase, branch, start)
    if (ownBranch !== undefined) await dropBranch(context, codebase, ownBranch.name, ownBranch.tip)
  },
}

/** Moves the directory to the trash and deletes git's record, unless it has somebody's work that can't be saved. */
const takeBack = async (
  context: IsolationContext,
  undoing: CreationUndo,
  found: AdminDir | undefined,
): Promise<Salvaged | NotUndone> => {
  const { codebase, entry, data } = undoing
  // Once discarded, a directory at its path that links to the record is somebody's copy.
  const ours = isBeingDiscarded(entry) ? [] : pathsOf(data)
  if (found !== undefined && (await wasTaken(found, ours))) {
    await leaveToUser(found.dir)
    return 'cannot-keep'
  }
  const path = isBeingDiscarded(entry) ? undefined : await findDirectory(found, data)
  const admin = found !== undefined && (await isWholeRecord(found.dir)) ? found : undefined
  const tree = path === undefined ? undefined : treeAt(codebase, admin?.dir ?? missingRecord(undoing), path)
  // Git has written nothing, as for a branch that is checked out elsewhere.
  const isUnused = tree !== undefined && admin === undefined && (await isEmptyDirectory(tree.path))
  const users = tree === undefined || isUnused ? undefined : await whoUses(context, entry, 'worktree', tree)
  if (users !== undefined) return { left: users }
  // Nobody can have committed through half a record, and git fails on it: delete it before calling git.
  if (found !== undefined && admin === undefined) await removeHalfRecord(found.dir)
  const saved =
    tree === undefined
      ? await saveMissing(context, undoing, admin)
      : await clearAway(context, undoing, tree, { admin, isUnused })
  if (saved === 'cannot-keep' && admin !== undefined) await leaveToUser(admin.dir)
  if (saved === 'cannot-keep' || isNotUndone(saved)) return saved
  if (admin !== undefined) await forgetRecord(context, undoing, admin)
  await context.failpoint('undo.forgotten')
  return saved
}

/** Its directory is gone. Once discarded, everything was saved before. */
const saveMissing = async (
  context: IsolationContext,
  { codebase, entry, data }: CreationUndo,
  admin: AdminDir | undefined,
): Promise<Salvaged> => {
  if (admin === undefined || isBeingDiscarded(entry)) return savedBefore(context, entry)
  const tree = treeAt(codebase, admin.dir, codebase.repoPath)
  const saved = await saveRecord(context, restorePointSource, codebase, entry, tree, data.start)
  return saved === 'nothing' ? savedBefore(context, entry) : saved
}

const clearAway = async (
  context: IsolationContext,
  { codebase, entry, data }: CreationUndo,
  tree: Tree,
  { admin, isUnused }: { readonly admin: AdminDir | undefined; readonly isUnused: boolean },
): Promise<Salvaged | NotUndone> => {
  const directories = [tree.path, ...(admin === undefined ? [] : [admin.dir])]
  if (await holdsOthers(context, directories, tree)) return 'cannot-keep'
  if (isUnused) return 'nothing'
  return saveAndDiscard(context, {
    codebase,
    entry,
    provider: 'worktree',
    tree,
    movedTree: (path) => ({ ...tree, path }),
    save: () => saveOthersWork(context, restorePointSource, codebase, entry, tree, data.start),
  })
}

/** Where git would have put its record. A record of that name that existed before is somebody else's. */
const missingRecord = ({ codebase, data }: CreationUndo): string => {
  const guess = join(codebase.repoPath, 'worktrees', data.leaf)
  return data.adminNamesBefore.includes(data.leaf) ? join(guess, 'none') : guess
}

const forgetRecord = async (
  context: Pick<IsolationContext, 'git'>,
  { codebase }: CreationUndo,
  admin: AdminDir,
): Promise<void> => {
  // The record is ours by its reason or its token, so its lock is too.
  await clearLock(admin.dir)
  // Git would refuse, or delete what somebody has put there: delete only the record.
  if (await isTakenPath(admin)) return deleteTree(admin.dir)
  await removeWorktreeRecord(context.git, repoOf(codebase), admin).catch(async (error: unknown) => {
    // A record that is whole may be somebody's by now.
    if (await isWholeRecord(admin.dir)) throw error
    await removeHalfRecord(admin.dir)
  })
}

/** Its path holds something other than its directory. */
const isTakenPath = async ({ dir, worktreePath }: AdminDir): Promise<boolean> =>
  worktreePath !== undefined &&
  (await unlessMissing(lstat(worktreePath))) !== undefined &&
  (await readWorktreeLink(worktreePath)) !== dir

/** Git can't read such a record. Delete only the files that `git worktree add` writes, then the empty directory. */
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
