import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { noteItem } from '../agent-file.ts'
import type { FleetContext } from '../context.ts'
import { treeOf } from '../tree.ts'

/**
 * Nobody works on the item any more: its worktree says so, in case it stays. Otherwise, after the database was lost,
 * somebody would begin with it again.
 */
export const noteInWorktree = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  codebase: Codebase | undefined,
  environment: IsolatedEnvironment | undefined,
  itemId: number | undefined,
): Promise<void> => {
  const item = itemId === undefined ? undefined : await isolation.store.items.get(itemId)
  if (codebase === undefined || environment?.status !== 'active' || item === undefined) return
  try {
    noteItem(await treeOf(isolation, codebase, environment), item)
  } catch (error) {
    const { message } = toAppError(error)
    isolation.log.warn("an item's worktree doesn't say that it is finished", { item: item.id, error: message })
  }
}
