import { readHead } from '../../../git/admin-dir.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import type { Keeping } from '../checkout/kind.ts'
import { bringCommit } from './bring.ts'
import { tipsToKeep } from './tips.ts'

/** A clone has refs of its own, all of which a restore point must reach: what they borrow stays in the repository by it. */
export const keeping: Keeping = {
  isWhole: async ({ gitDir }) => {
    const head = await readHead(gitDir).catch(() => undefined)
    if (head === undefined) return false
    return 'sha' in head || (await readRefFile(gitDir, `refs/heads/${head.branch}`)) !== undefined
  },
  tipsToKeep,
  bringCommit,
}
