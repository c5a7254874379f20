import { readdir, rmdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { shownPath } from '../../../domain/raw-path.ts'
import type { Tree } from '../../../domain/tree.ts'
import { mountsInside } from '../../../process/files/mounts.ts'
import type { JournalEntry } from '../../../store/store.ts'
import type { IsolationContext } from '../../context.ts'
import { managedRoot } from '../../paths.ts'
import { discardDirectory } from '../../trash/trash.ts'
import { walk } from '../../walk.ts'
import { worktreesInside } from './look/repositories-inside.ts'

/** What became of the work that somebody had done in a half-made environment. */
export type Salvaged = 'nothing' | 'saved' | 'cannot-keep'

/** The last step of undoing: the rows. */
export const endMaking = (context: IsolationContext, entry: JournalEntry, saved: Salvaged): Promise<void> =>
  context.store.transaction(async (store) => {
    if (entry.environmentId !== undefined) {
      await store.ports.release(entry.environmentId)
      // A row that a restore point speaks of stays, so that `restore` finds it.
      if (saved === 'saved') await store.environments.transition(entry.environmentId, 'creating', 'removed')
      else await store.environments.forgetCreating(entry.environmentId)
    }
    await store.journal.end(entry.id)
  })

/** A mount or somebody's worktree inside: no restore point can hold either, so it all stays. */
export const holdsOthers = async (
  context: IsolationContext,
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

export const discard = async (context: IsolationContext, path: string, id: string): Promise<void> => {
  const root = basename(dirname(path)) === '.spares' ? dirname(dirname(path)) : await managedRoot(path, context.host)
  if (root === undefined) return
  context.reap([await discardDirectory(root, path, id)])
}

/** Git makes the directory before it writes into it: empty, it is nobody's. rmdir takes no more. */
export const removeIfEmpty = async (path: string): Promise<void> => {
  const names = await readdir(path).catch(() => undefined)
  if (names?.length === 0) await rmdir(path).catch(() => undefined)
}
