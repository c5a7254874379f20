import type { IsolationContext, LostEnvironment } from '../isolation/context.ts'
import { describeBranchOutcome } from '../commands/views/merged.ts'
import { describeLeftOut } from '../commands/views/left-out.ts'
import { sentence } from '../domain/text/words.ts'
import { releasedNotice, removedActions, removedNotice } from './notices.ts'
import { recordReplies, type ReplyContext } from './outbox/replies.ts'

/**
 * A removal took the environment from these conversations. Ends their sessions, whose files are gone, and notifies
 * their threads, all in the removal's own transaction.
 */
export const createOnEnvironmentLost =
  (speaker: ReplyContext): IsolationContext['onEnvironmentLost'] =>
  async (store, lost) => {
    for (const { id, platform, conversationId } of lost.conversations) {
      await store.sessions.end(id, `worktree ${lost.how}`, speaker.isolation.clock())
      // The command's reply tells who asked. A closed conversation didn't ask, so it is notified here.
      if (id === lost.askedBy && lost.trigger !== 'closed') continue
      await recordReplies(speaker, store, { platform, conversationId, inboxId: undefined }, [
        {
          key: `lost:${lost.environment.id}`,
          role: 'system',
          text: noticeOf(lost),
          ...(lost.how === 'removed' && { actions: removedActions(lost.environment) }),
        },
      ])
    }
  }

const noticeOf = ({ environment, how, trigger, why, branch, leftOut }: LostEnvironment): string => {
  if (how === 'released') return releasedNotice(environment)
  const lost = describeLeftOut(leftOut)
  return [
    removedNotice(environment, why),
    ...(trigger === 'closed' && branch !== undefined ? [sentence(describeBranchOutcome(branch))] : []),
    ...(lost.length === 0 ? [] : [`Not kept: ${lost.join(', ')}.`]),
  ].join(' ')
}
