import type { Codebase } from '../../../domain/environment.ts'
import { clearPrivateIndexes } from '../../../git/private-index.ts'
import type { JournalEntry } from '../../../store/store.ts'
import type { IsolationContext } from '../../context.ts'
import { linkedWorktree } from './checkout.ts'
import { dropLostSpares, recallSpares } from './forgotten-spares.ts'
import { settleRemoval } from '../checkout/removal-steps.ts'
import { undoMaking } from './undo.ts'

/** Finishes or undoes what a crash interrupted. Answers why something was left alone. */
export const settle = async (
  context: IsolationContext,
  codebase: Codebase,
  { id, kind }: JournalEntry,
): Promise<string | undefined> => {
  if (kind === 'remove') {
    await settleRemoval(context, linkedWorktree, codebase, id)
    return undefined
  }
  const undone = await undoMaking(context, codebase, id, 'after-crash')
  return undone.outcome === 'left' ? undone.detail : undefined
}

export const tidy = async (context: IsolationContext, codebase: Codebase): Promise<void> => {
  await dropLostSpares(context, codebase)
  await recallSpares(context, codebase)
  await clearPrivateIndexes(context.git)
}
