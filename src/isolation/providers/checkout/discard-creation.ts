import { lstat, mkdir, readdir, rename, rmdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { toEnvironmentId } from '../../../domain/names.ts'
import type { ProviderName } from '../../../domain/provider-name.ts'
import { shownPath } from '../../../domain/text/raw-path.ts'
import type { Tree } from '../../../domain/tree.ts'
import { mountsInside } from '../../../process/files/mounts.ts'
import type { JournalEntry } from '../../../store/store.ts'
import type { IsolationContext } from '../../context.ts'
import { syncDirectory } from '../../durable.ts'
import { allPass, isUnmounted, stillInUse, type Used } from '../../gates.ts'
import { managedRoot } from '../../paths.ts'
import { findInTrash, giveUp, moveToTrash } from '../../trash/trash.ts'
import { walk } from '../../walk.ts'
import type { NotUndone, Salvaged } from './kind.ts'
import { worktreesInside } from './look/repositories-inside.ts'
import { treeStamp, type TreeStamp } from './look/tree-stamp.ts'
import { discardRestorePoint } from './restore-point/restore-point.ts'
import type { LeftAlone } from '../../../domain/notice.ts'
import type { GateAnswer } from '../../../domain/removal/gates.ts'

export const isNotUndone = (answer: Salvaged | NotUndone): answer is NotUndone => typeof answer === 'object'

/** The last step of undoing: the rows. */
export const endCreation = (
  context: Pick<IsolationContext, 'store'>,
  entry: JournalEntry,
  saved: Salvaged,
): Promise<void> =>
  context.store.transaction(async (store) => {
    if (entry.environmentId !== undefined) {
      await store.ports.release(entry.environmentId)
      // Keep a row that a restore point refers to, so that `restore` finds it.
      const isSaved = saved === 'saved' || (await store.restorePoints.get(entry.id)) !== undefined
      if (isSaved) await store.environments.transition(entry.environmentId, 'creating', 'removed')
      else await store.environments.deleteCreating(entry.environmentId)
    }
    await store.journal.end(entry.id)
  })

/** A mount or someone's worktree inside: no restore point can hold either, so keep it all. */
export const holdsOthers = async (
  context: Pick<IsolationContext, 'clock' | 'log'>,
  directories: readonly string[],
  tree: Tree,
): Promise<boolean> => {
  const mounts = await mountsInside(directories)
  const worktrees = mounts.length > 0 ? [] : await worktreesInside(tree, await walk(tree.path, context.clock()))
  const inside = [...mounts.map(({ path }) => path), ...worktrees.map(({ path }) => shownPath(path))]
  if (inside.length > 0)
    context.log.warn('a half-made worktree was left: it holds something else', { path: tree.path, inside })
  return inside.length > 0
}

/** Who uses the half-made tree; undefined if nobody does. */
export const whoUses = async (
  context: IsolationContext,
  entry: JournalEntry,
  provider: ProviderName,
  tree: Tree,
): Promise<LeftAlone | undefined> => {
  const environment: Used = { id: toEnvironmentId(entry.environmentId ?? entry.id), provider }
  const first = await stillInUse(context, { environment }, tree)
  // Another Coppice process may just have been running git on it.
  const users = allPass(first) ? first : await stillInUse(context, { environment }, tree)
  const reasons = users.filter(({ answer }) => answer !== 'yes')
  return reasons.length === 0 ? undefined : because(reasons)
}

const because = (reasons: readonly GateAnswer[]): LeftAlone => ({
  kind: 'facts',
  facts: reasons.flatMap(({ fact }) => fact ?? []),
})

export type Discarding = {
  readonly codebase: Codebase
  readonly entry: JournalEntry
  readonly provider: ProviderName
  readonly tree: Tree
  /** The same checkout after its directory was moved. */
  readonly movedTree: (path: string) => Tree
  readonly save: () => Promise<Salvaged>
}

/**
 * Saves what others did in the tree and removes it, as removal does: moves it away first, then checks again. If it
 * changed meanwhile, it is moved back.
 */
export const saveAndDiscard = async (
  context: IsolationContext,
  discarding: Discarding,
): Promise<Salvaged | NotUndone> => {
  const { codebase, entry, tree, movedTree } = discarding
  const before = await treeStamp(tree)
  const saved = await discarding.save()
  if (saved === 'cannot-keep') return saved
  await context.failpoint('undo.saved')
  const root = await rootOf(context, tree.path)
  if (root === undefined) return saved
  // A spare being claimed may be in either of two places, and must go back to the same one.
  await context.store.journal.advance(entry.id, { data: { trashedFrom: tree.path } })
  const trash = await moveToTrash(root, tree.path, trashId(entry))
  await context.failpoint('undo.moved')
  const changed = await lookAgain(context, discarding, movedTree(trash), before).catch((error: unknown): LeftAlone => ({
    kind: 'failed',
    message: toAppError(error).message,
  }))
  if (changed !== undefined) {
    const problem = await putBack(trash, tree.path)
    if (problem === undefined && saved === 'saved') await discardRestorePoint(context, codebase, entry.id)
    return { left: problem ?? changed }
  }
  await context.store.journal.advance(entry.id, { step: givingUp })
  await context.failpoint('undo.checked')
  await deleteLater(context, root, tree.path, entry)
  await context.failpoint('undo.discarded')
  return saved
}

/** Checks for users first, so that the stamp covers everything they wrote before. */
const lookAgain = async (
  context: IsolationContext,
  { entry, provider }: Discarding,
  moved: Tree,
  before: TreeStamp,
): Promise<LeftAlone | undefined> => {
  // Git may have been killed before creating its directory.
  const hasRecord = (await unlessMissing(lstat(moved.gitDir))) !== undefined
  const mounts = await isUnmounted(hasRecord ? [moved.path, moved.gitDir] : [moved.path])
  const mounted = mounts.find(({ answer }) => answer !== 'yes')
  if (mounted !== undefined) return because([mounted])
  const users = await whoUses(context, entry, provider, moved)
  if (users !== undefined) return users
  const now = await treeStamp(moved, before.withIndex)
  return now.value === before.value ? undefined : { kind: 'changed-meanwhile' }
}

/** From this step on it may be deleted at any time: its path may hold something else. */
const givingUp = 'giving-up'

export const isBeingDiscarded = ({ step }: JournalEntry): boolean => step === givingUp

/**
 * An interrupted undo may have moved it to the trash. If it had checked again, finish it; otherwise move the directory
 * back to be checked again. Returns why it can't.
 */
export const resumeDiscarding = async (
  context: Pick<IsolationContext, 'host' | 'deleteInBackground'>,
  entry: JournalEntry,
  paths: readonly string[],
): Promise<LeftAlone | undefined> => {
  for (const path of paths) {
    const root = await rootOf(context, path)
    const trash = root === undefined ? undefined : await findInTrash(root, path, trashId(entry))
    if (root === undefined || trash === undefined) continue
    if (!isBeingDiscarded(entry)) return putBack(trash, path)
    await deleteLater(context, root, path, entry)
  }
  return undefined
}

const deleteLater = async (
  context: Pick<IsolationContext, 'deleteInBackground'>,
  root: string,
  path: string,
  entry: JournalEntry,
): Promise<void> => {
  const trash = await giveUp(root, path, trashId(entry))
  if (trash !== undefined) context.deleteInBackground([trash])
}

/** What an interrupted undo had saved before it removed the directory. */
export const savedBefore = async (
  { store }: Pick<IsolationContext, 'store'>,
  { id }: JournalEntry,
): Promise<Salvaged> => ((await store.restorePoints.get(id)) === undefined ? 'nothing' : 'saved')

const putBack = async (trash: string, path: string): Promise<LeftAlone | undefined> => {
  if ((await unlessMissing(lstat(path))) !== undefined) return { kind: 'in-trash', trash, path }
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(trash, path)
  await syncDirectory(dirname(path))
  return undefined
}

const rootOf = async ({ host }: Pick<IsolationContext, 'host'>, path: string): Promise<string | undefined> =>
  basename(dirname(path)) === '.spares' ? dirname(dirname(path)) : managedRoot(path, host)

const trashId = ({ environmentId, id }: JournalEntry): string => environmentId ?? id

/** The directory exists before git fills it: an empty one is nobody's. Else rmdir fails. */
export const removeIfEmpty = async (path: string): Promise<void> => {
  if (await isEmptyDirectory(path)) await rmdir(path).catch(() => undefined)
}

export const isEmptyDirectory = async (path: string): Promise<boolean> =>
  (await readdir(path).catch(() => undefined))?.length === 0
