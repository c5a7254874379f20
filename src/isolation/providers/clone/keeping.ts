import { readHead } from '../../../git/admin-dir.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import { listRefs, resolveCommit } from '../../../git/refs.ts'
import type { Keeping } from '../checkout/kind.ts'
import { bringCommit } from './bring.ts'

/** A clone has refs of its own, all of which a restore point must reach: what they borrow stays in the repository by it. */
export const keeping: Keeping = {
  isWhole: async ({ gitDir }) => {
    const head = await readHead(gitDir).catch(() => undefined)
    if (head === undefined) return false
    return 'sha' in head || (await readRefFile(gitDir, `refs/heads/${head.branch}`)) !== undefined
  },
  tipsToKeep: async ({ git }, tree) => {
    const refs = await listRefs(git, tree, ['refs/'])
    const commits = await Promise.all(
      refs.map(async ({ sha, committerDate }) =>
        committerDate === undefined ? resolveCommit(git, tree, `${sha}^{commit}`).catch(() => undefined) : sha,
      ),
    )
    return [...new Set(commits.flatMap((sha) => sha ?? []))]
  },
  bringCommit,
}
