import type { RestorePointSource } from '../checkout/kind.ts'
import { isWholeRecord } from './find-unfinished.ts'

/** A worktree commits to the codebase's own repository: there is nothing to bring, and no ref that only it has. */
export const restorePointSource: RestorePointSource = {
  isWhole: ({ gitDir }) => isWholeRecord(gitDir),
  tipsToKeep: async () => [],
  ownWork: async () => [],
  madeOn: async () => undefined,
  importCommit: async () => undefined,
}
