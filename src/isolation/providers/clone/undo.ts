import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { clearToken } from '../../../git/admin-dir.ts'
import { cloneAt } from '../../../git/borrowing-clone.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { endScripts, gitsStillUsing, settleChild } from '../../children.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { Undone } from '../checkout/kind.ts'
import { isOurDirectory, type MakingLeft, readMakingData } from '../checkout/making.ts'
import { saveStrangersWork } from '../checkout/salvage-creation.ts'
import { discard, endMaking, holdsOthers, removeIfEmpty, type Salvaged } from '../checkout/unmake.ts'
import { keeping } from './keeping.ts'
import { unpin } from './refs.ts'

/** Takes back what one creation or restore made. Everything but its pins lies in its directory. */
export const undoMaking = async (
  context: IsolationContext,
  codebase: Codebase,
  entryId: string,
  when: 'just-made' | 'after-crash',
): Promise<Undone> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return { outcome: 'undone' }
  const data = readMakingData(entry)
  if (when === 'after-crash') {
    const ofRepository = await settleChild(context, codebase.repoPath, entry)
    const running = ofRepository ?? (await gitsStillUsing(context, cloneAt(data.path).gitDir))
    if (running !== undefined) return { outcome: 'left', detail: running }
  }
  if (!(await endScripts(context, entry))) {
    return { outcome: 'left', detail: 'a process that its setup started is still running' }
  }
  const saved = (await isOurDirectory(data)) ? await takeBack(context, codebase, entry, data, when) : 'nothing'
  await removeIfEmpty(data.path)
  // A clone that was left to whoever worked in it still stands on them.
  if (saved !== 'cannot-keep' && entry.environmentId !== undefined) {
    await unpin(context, repoOf(codebase), entry.environmentId)
  }
  await context.failpoint('undo.branch')
  await endMaking(context, entry, saved)
  return { outcome: 'undone' }
}

const takeBack = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  data: MakingLeft,
  when: 'just-made' | 'after-crash',
): Promise<Salvaged> => {
  const tree = cloneAt(data.path)
  let saved: Salvaged = (await holdsOthers(context, [tree.path], tree)) ? 'cannot-keep' : 'nothing'
  if (saved === 'nothing' && when === 'after-crash') {
    saved = (await keeping.isWhole(tree))
      ? await saveStrangersWork(context, keeping, codebase, entry, tree, data.start)
      : await filesWithoutGit(data.path)
  }
  if (saved === 'cannot-keep') {
    await clearToken(tree.gitDir)
    return saved
  }
  await context.failpoint('undo.saved')
  await discard(context, data.path, entry.environmentId ?? entry.id)
  await context.failpoint('undo.discarded')
  return saved
}

/** Git was killed before it wrote any file: what else is there is somebody's. */
const filesWithoutGit = async (path: string): Promise<Salvaged> =>
  (await readdir(join(path))).some((name) => name !== '.git') ? 'cannot-keep' : 'nothing'
