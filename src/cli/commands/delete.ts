import { dirname } from 'node:path'
import { toAppError } from '../../domain/errors.ts'
import { isDeletedClone } from '../../isolation/codebases/clone-repository.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { isGivenUp } from '../../isolation/trash/trash.ts'
import { leaveLiveWorktree } from '../../isolation/codebases/live-worktree.ts'
import { deleteTreeSync } from '../../process/files/delete-tree.ts'
import { command } from '../../commands/command.ts'

/**
 * Started in the background after a removal, so that nobody waits for a hundred thousand files. What it can't delete is
 * logged and reported by `coppice doctor`.
 */
export const deleteCommand = command<number>({
  run: async (call) => {
    const { context } = await call.open()
    let deleted = 0
    for (const path of call.words) if (await wasDeleted(context, path)) deleted += 1
    return deleted
  },
  toText: () => '',
  toJson: (deleted) => ({ deleted }),
})

const wasDeleted = async (context: Pick<IsolationContext, 'log' | 'host' | 'home'>, path: string): Promise<boolean> => {
  // Anything else may be somebody's work.
  if (!(await isGivenUp(context, path)) && !(await isDeletedClone(context, path))) return false
  try {
    deleteTreeSync(path, { leave: leaveLiveWorktree })
    return true
  } catch (error) {
    context.log.warn('not everything could be deleted', { in: dirname(path), error: toAppError(error).message })
    return false
  }
}
