import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { isAppError } from '../../../domain/errors.ts'
import { isSha, type Sha } from '../../../domain/names.ts'
import type { CallOptions, Tree } from '../../../git/door.ts'
import { maxOtherBytes } from '../../../git/file-limits.ts'
import { isAncestor } from '../../../git/history.ts'
import { historyOutside, notReachableFrom } from '../../../git/reachable.ts'
import { headMovesSince, type ReflogEntry } from '../../../git/reflog.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import { commitsIn, mostCommits } from './content-trust.ts'

export type Vouching = {
  readonly vouched: Sha
  /** HEAD's reflog when somebody vouched. */
  readonly log: string
  readonly head: Sha
}

/**
 * Whether a person has vouched for what is checked out: the commit they named, or that commit plus only base and
 * commits made in this worktree. A fast-forward or merge to the pull request's next head doesn't count, no matter who
 * did it. Nor does an older commit: it has what the vouched one removed. The way back doesn't help either: after
 * `git reset --soft` the other commit's files are still there.
 */
export const isVouchedCommit = async (
  context: IsolationContext,
  codebase: Codebase,
  tree: Tree,
  { vouched, log, head }: Vouching,
  options: CallOptions = {},
): Promise<boolean> => {
  const [moves, merged] = await Promise.all([headMovesSince(tree.gitDir, log), beingMerged(tree)]).catch(
    // An unreadable file proves nothing.
    () => [undefined, []] as const,
  )
  if (moves === undefined || !isWhole(moves, vouched, head)) return false
  const visited = new Set([...moves.flatMap(({ to }) => to ?? []), ...merged])
  visited.delete(vouched)
  if (visited.size === 0) return true
  const made = commitsIn([moves])
  const { git } = context
  const { base } = await baseAndConfig(context, codebase)
  try {
    if (!(await isAncestor(git, tree, vouched, head, options))) return false
    const unmade = [...visited].filter((sha) => !made.has(sha))
    if ((await notReachableFrom(git, tree, base.sha, unmade, options)).size > 0) return false
    const limits = { ...options, limit: mostCommits }
    const added = await historyOutside(git, tree, [...visited], [vouched, base.sha], limits)
    return added.length < mostCommits && added.every((sha) => made.has(sha))
  } catch (error) {
    // A commit that HEAD was at is gone.
    if (isAppError(error, 'git-failed')) return false
    throw error
  }
}

/** Each move starts where the one before ended. Renaming a branch takes two: to nothing, and back from nothing. */
const isWhole = (moves: readonly ReflogEntry[], start: Sha, head: Sha): boolean => {
  let at = start
  let isRenaming = false
  for (const { from, to } of moves) {
    if (from !== at && !(isRenaming && from === undefined)) return false
    isRenaming = to === undefined
    at = to ?? at
  }
  return at === head
}

/** Commits whose files are being brought in and that HEAD's reflog doesn't name yet, or never will. */
const beingMerged = async ({ gitDir }: Tree): Promise<Sha[]> => {
  const read = async (name: string): Promise<string> =>
    (await readUntrustedText(join(gitDir, name), { maxBytes: maxOtherBytes })) ?? ''
  const heads = (await Promise.all(['MERGE_HEAD', 'CHERRY_PICK_HEAD'].map(read))).flatMap((text) => text.split('\n'))
  // Committing deletes it, and then nothing names them any more.
  const squashed = (await read('SQUASH_MSG')).matchAll(/^commit ([0-9a-f]+)$/gm)
  return [...heads, ...[...squashed].map(([, sha = '']) => sha)].filter(isSha)
}
