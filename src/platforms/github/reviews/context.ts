import type { MessageRef } from '../message-id.ts'
import { quotedRemark } from '../quoted-text.ts'
import type { ReviewComment } from './client.ts'
import { describeLines, quotedHunk } from './code-location.ts'

export type Reviews = {
  readonly comments: readonly ReviewComment[]
  /** The first comments of resolved threads; undefined: unknown. */
  readonly resolved: ReadonlySet<number> | undefined
}

export type AboutMessage = {
  readonly message: MessageRef | undefined
  /** The first comment of the thread that it was written in. */
  readonly thread: number | undefined
}

/**
 * The review threads that a message may be about, most relevant first: its own, those of its review, and all that
 * aren't resolved. Every line written by somebody is quoted.
 */
export const describeReviews = ({ comments, resolved }: Reviews, { message, thread: own }: AboutMessage): string => {
  const threads = Map.groupBy(
    // What was said later in its own thread is no context for the message.
    comments.filter(({ id, thread }) => thread !== own || message === undefined || id < message.id),
    ({ thread }) => thread,
  )
  // Each reply is a review of its own, so the thread's first comment says which review it belongs to.
  const review = message?.kind === 'review' ? message.id : comments.find(({ id }) => id === own)?.reviewId
  const rankOf = ([first, [comment]]: readonly [number, readonly ReviewComment[]]): number => {
    if (first === own) return 0
    if (review !== undefined && comment?.reviewId === review) return 1
    return resolved?.has(first) === true ? NOT_SHOWN : 2
  }
  let room = MAX_REVIEWS
  const shown: string[] = []
  let left = 0
  for (const thread of [...threads].toSorted((a, b) => rankOf(a) - rankOf(b) || a[0] - b[0])) {
    const rank = rankOf(thread)
    if (rank === NOT_SHOWN) continue
    const text = describeReviewThread(thread[1], titleOf(rank, resolved?.has(thread[0])))
    if (text.length > room) left += 1
    else {
      room -= text.length
      shown.push(text)
    }
  }
  if (left > 0) shown.push(`\n[left out: ${left} more review ${left === 1 ? 'thread' : 'threads'}]`)
  return shown.join('\n')
}

const NOT_SHOWN = 3
const MAX_REVIEWS = 30_000
const MAX_HUNK = 1_500

const titleOf = (rank: number, isResolved: boolean | undefined): string => {
  if (rank === 0) return 'Earlier in the review thread of this message, about'
  const state = isResolved === undefined ? '' : isResolved ? 'resolved ' : 'unresolved '
  return rank === 1 ? `Of the same review, a ${state}thread about` : `Another ${state}review thread, about`
}

const describeReviewThread = (comments: readonly ReviewComment[], title: string): string => {
  const [first] = comments
  if (first === undefined) return ''
  return [
    '',
    `${title} ${describeLines(first.location)}:`,
    ...quotedHunk(first.location, MAX_HUNK),
    ...comments.flatMap(
      ({ login, createdAt, body }) => quotedRemark({ by: `@${login}`, at: createdAt, text: body }) ?? [],
    ),
  ].join('\n')
}
