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
