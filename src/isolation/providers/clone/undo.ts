import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { clearToken } from '../../../git/admin-dir.ts'
import { cloneAt } from '../../../git/borrowing-clone.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { endScripts, gitsStillUsing, settleChild } from '../../children.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { Salvaged, Undone, UndoWhen } from '../checkout/kind.ts'
import { isOurDirectory, type MakingLeft, readMakingData } from '../checkout/making.ts'
import { saveStrangersWork } from '../checkout/salvage-creation.ts'
import {
  discard,
  endMaking,
  holdsOthers,
  isGivenUp,
  isLeft,
  type Left,
  removeIfEmpty,
  resumeDiscarding,
  saveAndDiscard,
  savedBefore,
  whoUses,
} from '../checkout/unmake.ts'
import { keeping } from './keeping.ts'
import { unpin } from './refs.ts'

/** Takes back what one creation or restore made. Everything but its pins lies in its directory. */
export const undoMaking = async (
  context: IsolationContext,
  codebase: Codebase,
  entryId: string,
  when: UndoWhen,
): Promise<Undone> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return { outcome: 'undone', work: 'nothing' }
  const data = readMakingData(entry)
  // What failed in this very process has awaited all its children.
  if (when === 'after-crash') {
    const ofRepository = await settleChild(context, codebase.repoPath, entry)
    const running = ofRepository ?? (await gitsStillUsing(context, cloneAt(data.path).gitDir))
    if (running !== undefined) return { outcome: 'left', detail: running }
  }
  if (!(await endScripts(context, entry))) {
    return { outcome: 'left', detail: 'a process that its setup started is still running' }
  }
  const astray = await resumeDiscarding(context, entry, [data.path])
  if (astray !== undefined) return { outcome: 'left', detail: astray }
  const isThere = !isGivenUp(entry) && (await isOurDirectory(data))
  const saved = isThere ? await takeBack(context, codebase, entry, data, when) : await savedBefore(context, entry)
  if (isLeft(saved)) return { outcome: 'left', detail: saved.left }
  await removeIfEmpty(data.path)
  // A clone that was left to whoever worked in it still stands on them.
  if (saved !== 'cannot-keep' && entry.environmentId !== undefined) {
    await unpin(context, repoOf(codebase), entry.environmentId)
  }
  await context.failpoint('undo.branch')
  await endMaking(context, entry, saved)
  return { outcome: 'undone', work: saved }
}

const takeBack = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  data: MakingLeft,
  when: UndoWhen,
): Promise<Salvaged | Left> => {
  const tree = cloneAt(data.path)
  const users = when === 'just-made' ? undefined : await whoUses(context, entry, 'clone', tree)
  if (users !== undefined) return { left: users }
  const saved = await clearAway(context, codebase, entry, data, when)
  if (saved === 'cannot-keep') await clearToken(tree.gitDir)
  return saved
}

const clearAway = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  data: MakingLeft,
  when: UndoWhen,
): Promise<Salvaged | Left> => {
  const tree = cloneAt(data.path)
  if (await holdsOthers(context, [tree.path], tree)) return 'cannot-keep'
  if (when === 'just-made') return discard(context, entry, tree.path)
  return saveAndDiscard(context, {
    codebase,
    entry,
    provider: 'clone',
    tree,
    movedTree: cloneAt,
    save: async () =>
      (await keeping.isWhole(tree))
        ? saveStrangersWork(context, keeping, codebase, entry, tree, data.start)
        : filesWithoutGit(data.path),
  })
}

/** Git was killed before it wrote any file: what else is there is somebody's. */
const filesWithoutGit = async (path: string): Promise<Salvaged> =>
  (await readdir(join(path))).some((name) => name !== '.git') ? 'cannot-keep' : 'nothing'
