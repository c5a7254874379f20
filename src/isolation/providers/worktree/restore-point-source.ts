import type { RestorePointSource } from '../checkout/kind.ts'
import { isWholeRecord } from './find-unfinished.ts'

/** A worktree commits to the codebase's own repository: nothing to import, and no refs of its own. */
export const restorePointSource: RestorePointSource = {
  isWhole: ({ gitDir }) => isWholeRecord(gitDir),
  tipsToKeep: async () => [],
  ownWork: async () => [],
  madeOn: async () => undefined,
  importCommit: async () => undefined,
}
