import { RequestError } from 'octokit'
import type { Clock } from '../../domain/clock.ts'
import type { ReplyPort, RateLimit } from '../replies/port.ts'
import type { Comment, GithubClient } from './client.ts'
import { failureOf, toDeliveryError } from './failure.ts'
import { asPreview, COMMENT_LIMIT, hasMarker, isOurs, isPreview, withMarker } from './marker.ts'
import { noRetries, type Identity } from './octokits.ts'
import { type ReplyPlace, replyPlaceOf } from './reply-place.ts'
import type { ReviewClient } from './reviews/client.ts'

export type ReplyPortParts = {
  readonly client: Pick<GithubClient, 'newestComments' | 'createComment' | 'updateComment'>
  readonly reviews: Pick<ReviewClient, 'reviewComments' | 'replyInThread' | 'updateReviewComment'>
  /** Our account, once known: only our own comments count as ours. */
  readonly self: () => Promise<Identity | undefined>
  readonly clock: Clock
  /** Default: 15 s. An edit counts like a comment, and GitHub allows about 500 an hour. */
  readonly previewEveryMs?: number | undefined
  /** An app has separate limits in each account that installed it; a token has one for all. */
  readonly isApp: boolean
}

/** The two kinds of comments are numbered separately. */
export type PostedComment = { readonly in: 'conversation' | 'review-thread'; readonly id: number }

/** Replies are comments. The comments themselves say which replies they hold. */
export const githubReplies = (parts: ReplyPortParts): ReplyPort<ReplyPlace, PostedComment> => {
  const { client, reviews, self, clock, previewEveryMs = 15_000, isApp } = parts
  const limits = { everyMs: previewEveryMs, queue: { most: MAX_WAITING, eachMs: PACE_MS } }
  return {
    placeOf: replyPlaceOf,
    rateLimitOf: ({ owner }): RateLimit => ({ name: isApp ? owner.toLowerCase() : 'token', ...limits }),
    render: (text) => text,
    post: async (place, text, mark) => {
      const body = mark.kind === 'preview' ? text : withMarker(text, mark.id)
      if (place.reviewThread !== undefined) {
        try {
          return { in: 'review-thread', id: await reviews.replyInThread(place, place.reviewThread, body) }
        } catch (error) {
          if (!isThreadGone(error)) throw error
        }
      }
      return { in: 'conversation', id: await client.createComment(place, body) }
    },
    edit: (place, comment, text, mark) => {
      const body = mark.kind === 'preview' ? text : withMarker(text, mark.id)
      return comment.in === 'conversation'
        ? client.updateComment(place, comment.id, body)
        : reviews.updateReviewComment(place, comment.id, body)
    },
    find: async (place) => {
      const account = await self()
      const own = ownAmong(await client.newestComments(place, noRetries), account)
      const { reviewThread } = place
      if (reviewThread === undefined) return { has: holds(own), preview: leftoverPreview('conversation', own) }
      const all = await reviews.reviewComments(place, noRetries)
      const inThread = ownAmong(
        all.filter(({ thread }) => thread === reviewThread),
        account,
      )
      // A reply whose thread was deleted is in the conversation.
      return { has: holds([...inThread, ...own]), preview: leftoverPreview('review-thread', inThread) }
    },
    failureOf: (error) => ({
      error: toDeliveryError(error, clock),
      mayHaveSucceeded: failureOf(error, clock).kind === 'away',
    }),
    previews: {
      limit: COMMENT_LIMIT - 100,
      render: asPreview,
      firstMs: Math.min(previewEveryMs, FIRST_MS),
      whenOvertaken: 'stay',
    },
  }
}

/** At GitHub's pace the next ones are seconds away; meanwhile other platforms' replies go out. */
const MAX_WAITING = 5
const PACE_MS = 3_000
const FIRST_MS = 5_000

/** Its first comment was deleted. Better an answer in the conversation than none. */
const isThreadGone = (error: unknown): boolean =>
  error instanceof RequestError && (error.status === 404 || error.status === 422)

/** Anybody can write our marker, and a token with write access can edit other people's comments. */
const ownAmong = <C extends Comment>(comments: readonly C[], self: Identity | undefined): C[] =>
  comments.filter(
    ({ body, userId, appId, login }) =>
      isOurs(body) &&
      (self?.kind === 'user'
        ? userId === self.id
        : self?.kind === 'app' && (appId === self.id || login.toLowerCase() === `${self.login}[bot]`.toLowerCase())),
  )

const holds =
  (own: readonly Comment[]) =>
  (id: string): boolean =>
    own.some(({ body }) => hasMarker(body, id))

/** A preview left by a process that died: our last comment. */
const leftoverPreview = (where: PostedComment['in'], own: readonly Comment[]): PostedComment | undefined => {
  const last = own.at(-1)
  return last !== undefined && isPreview(last.body) ? { in: where, id: last.id } : undefined
}
