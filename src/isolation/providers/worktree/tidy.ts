import type { Codebase } from '../../../domain/environment.ts'
import { clearPrivateIndexes } from '../../../git/private-index.ts'
import type { IsolationContext } from '../../context.ts'
import { dropLostSpares, recallSpares } from './forgotten-spares.ts'

/** Spares whose rows or directories were lost, and unused temporary indexes. */
export const tidy = async (context: IsolationContext, codebase: Codebase): Promise<void> => {
  await dropLostSpares(context, codebase)
  await recallSpares(context, codebase)
  await clearPrivateIndexes(context.git)
}
