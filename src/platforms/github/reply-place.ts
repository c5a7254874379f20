import { type Thread, threadOf } from './conversation-id.ts'
import { messageIdOf, messageRefOf } from './message-id.ts'

/** Where replies go: the end of the issue or pull request, or the review thread that begins with this comment. */
export type ReplyPlace = Thread & { readonly reviewThread?: number }

/** In `MessageDetails.replyTo`: the thread's first comment, since GitHub takes no reply to a reply. */
export const reviewThreadTarget = (firstComment: number): string => messageIdOf('review-comment', firstComment)

/** Each review thread is a conversation of its own to the reply engine: it has its own preview. */
export const replyKey = (conversationId: string, replyTo: string | undefined): string =>
  messageRefOf(replyTo)?.kind === 'review-comment' ? `${conversationId} ${replyTo}` : conversationId

export const replyPlaceOf = (key: string): ReplyPlace | undefined => {
  const [conversationId = '', replyTo] = key.split(' ')
  const thread = threadOf(conversationId)
  const first = messageRefOf(replyTo)
  return thread === undefined || first === undefined ? thread : { ...thread, reviewThread: first.id }
}
