import type { Tree } from '../../../domain/tree.ts'
import { clearToken, readAdminDirs } from '../../../git/admin-dir.ts'
import { cloneAt } from '../../../git/borrowing-clone.ts'
import { gitsStillUsing } from '../../children.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { NotUndone, Salvaged, CreationUndo, UndoSteps } from '../checkout/kind.ts'
import { isOurDirectory } from '../checkout/creation-record.ts'
import { saveOthersWork } from '../checkout/salvage-creation.ts'
import { holdsOthers, isBeingDiscarded, saveAndDiscard, savedBefore, whoUses } from '../checkout/discard-creation.ts'
import { restorePointSource } from './restore-point-source.ts'
import { hasAnything } from './own-work.ts'
import { unpin } from './refs.ts'

/** Everything but its pins is in its directory. */
export const undoSteps: UndoSteps = {
  stillRunning: (context, { path }) => gitsStillUsing(context, cloneAt(path).gitDir),
  paths: ({ path }) => [path],
  takeBack: async (context, undoing) => {
    const { entry, data } = undoing
    if (isBeingDiscarded(entry)) return savedBefore(context, entry)
    if (!(await isOurDirectory(data))) {
      // Someone moved or deleted it. A moved clone still needs its pins.
      return data.directory === undefined ? savedBefore(context, entry) : 'cannot-keep'
    }
    const tree = cloneAt(data.path)
    // Even if just made: Coppice's lock keeps nobody out of the directory while git fills it.
    const users = await whoUses(context, entry, 'clone', tree)
    if (users !== undefined) return { left: users }
    const saved = await clearAway(context, undoing, tree)
    if (saved === 'cannot-keep') await clearToken(tree.gitDir)
    return saved
  },
  dropRefs: async (context, { codebase, entry: { environmentId } }, saved) => {
    // A clone left to someone who worked in it still depends on them.
    if (saved === 'cannot-keep' || environmentId === undefined) return
    await unpin(context, repoOf(codebase), environmentId)
  },
}

const clearAway = async (
  context: IsolationContext,
  { codebase, entry, data }: CreationUndo,
  tree: Tree,
): Promise<Salvaged | NotUndone> => {
  if (await holdsOthers(context, [tree.path], tree)) return 'cannot-keep'
  // It holds git's record of worktrees made from the clone.
  if ((await readAdminDirs(tree.commonDir)).length > 0) return 'cannot-keep'
  return saveAndDiscard(context, {
    codebase,
    entry,
    provider: 'clone',
    tree,
    movedTree: cloneAt,
    save: async () => {
      if (await restorePointSource.isWhole(tree)) {
        return saveOthersWork(context, restorePointSource, codebase, entry, tree, data.start)
      }
      return (await hasAnything(tree)) ? 'cannot-keep' : 'nothing'
    },
  })
}
