import type { Keeping } from '../checkout/kind.ts'
import { isWholeRecord } from './making-left.ts'

/** A worktree commits to the codebase's own repository: there is nothing to bring, and no ref that only it has. */
export const keeping: Keeping = {
  isWhole: ({ gitDir }) => isWholeRecord(gitDir),
  tipsToKeep: async () => [],
  ownWork: async () => [],
  madeOn: async () => undefined,
  bringCommit: async () => undefined,
}
