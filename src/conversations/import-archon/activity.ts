import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Tree } from '../../domain/tree.ts'
import { headMovedAt } from '../../git/reflog.ts'
import { listRefs } from '../../git/refs.ts'
import { readStatus } from '../../git/status.ts'
import { joinTreePath } from '../../git/tree-path.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { ArchonConversation } from '../../store/archon/archon.ts'

/** Time of the last message. A clock that was ahead must not keep it the most recent forever. */
export const activityOf = (
  { lastActivityAt, updatedAt, createdAt }: Pick<ArchonConversation, 'lastActivityAt' | 'updatedAt' | 'createdAt'>,
  now: number,
): number => Math.min(now, lastActivityAt ?? updatedAt ?? createdAt ?? now)

/** Undefined while it is open. */
export const closedAt = (conversation: ArchonConversation, now: number): number | undefined => {
  const { deletedAt, status } = conversation
  if (deletedAt !== undefined) return Math.min(now, deletedAt)
  return ['closed', 'archived', 'deleted'].includes(status ?? '') ? activityOf(conversation, now) : undefined
}

export type Age = { readonly createdAt: number; readonly lastActivityAt: number }

/**
 * When a worktree was made and last used: by its rows, its conversations, git's own times, and the files that aren't
 * committed. Not by the times of all its files: copying a directory makes them young.
 */
export const ageOf = async (
  { git, clock }: Pick<IsolationContext, 'git' | 'clock'>,
  { tree, branch }: { readonly tree: Tree; readonly branch: string },
  rows: readonly { readonly createdAt: number | undefined }[],
  conversations: readonly ArchonConversation[],
): Promise<Age> => {
  const now = clock()
  const made = rows.flatMap(({ createdAt }) => createdAt ?? [])
  const [ref] = await listRefs(git, tree, [`refs/heads/${branch}`]).catch(() => [])
  const used = [
    ...made,
    ...conversations.map(({ lastActivityAt, updatedAt, createdAt }) => lastActivityAt ?? updatedAt ?? createdAt),
    await headMovedAt(tree.gitDir),
    ref?.committerDate,
    ...(await uncommittedTimes(git, tree)),
  ]
  const known = used.flatMap((at) => (at !== undefined && at > 0 && at <= now ? [at] : []))
  // Git writes this file once, when it makes the worktree.
  const recorded = mtimeOf(join(tree.gitDir, 'commondir')) ?? now
  const lastActivityAt = known.length === 0 ? Math.min(now, recorded) : Math.max(...known)
  return { createdAt: Math.min(lastActivityAt, ...(made.length === 0 ? [recorded] : made)), lastActivityAt }
}

/** More aren't looked at: the newest of so many says enough. */
const mostFiles = 1000

const uncommittedTimes = async (git: IsolationContext['git'], tree: Tree): Promise<number[]> => {
  const status = await readStatus(git, tree).catch(() => undefined)
  const paths = [...(status?.changed ?? []), ...(status?.unmerged ?? []), ...(status?.untracked ?? [])]
  return paths.slice(0, mostFiles).flatMap((path) => mtimeOf(joinTreePath(tree.path, path)) ?? [])
}

const mtimeOf = (path: string | Buffer): number | undefined => {
  try {
    const time = lstatSync(path, { throwIfNoEntry: false })?.mtimeMs
    return time === undefined ? undefined : Math.floor(time)
  } catch {
    return undefined
  }
}
