import type { Clock } from '../../domain/clock.ts'
import type { ReplyPort, RateLimit } from '../replies/port.ts'
import type { Comment, GithubClient } from './client.ts'
import { type Thread, threadOf } from './conversation-id.ts'
import { failureOf, toDeliveryError } from './failure.ts'
import { asPreview, COMMENT_LIMIT, hasMarker, isOurs, isPreview, withMarker } from './marker.ts'
import { noRetries, type Identity } from './octokits.ts'

export type ReplyPortParts = {
  readonly client: Pick<GithubClient, 'newestComments' | 'createComment' | 'updateComment'>
  /** Our account, once known: only our own comments count as ours. */
  readonly self: () => Promise<Identity | undefined>
  readonly clock: Clock
  readonly previewEveryMs: number
  /** An app has separate limits in each account that installed it; a token has one for all. */
  readonly isApp: boolean
}

/** Replies are comments. The comments themselves say which replies they hold. */
export const githubReplies = (parts: ReplyPortParts): ReplyPort<Thread, number> => {
  const { client, self, clock, previewEveryMs, isApp } = parts
  const limits = { everyMs: previewEveryMs, queue: { most: MAX_WAITING, eachMs: PACE_MS } }
  return {
    placeOf: threadOf,
    rateLimitOf: ({ owner }): RateLimit => ({ name: isApp ? owner.toLowerCase() : 'token', ...limits }),
    render: (text) => text,
    post: (thread, text, mark) =>
      client.createComment(thread, mark.kind === 'preview' ? text : withMarker(text, mark.id)),
    edit: (thread, id, text, mark) =>
      client.updateComment(thread, id, mark.kind === 'preview' ? text : withMarker(text, mark.id)),
    find: async (thread) => {
      const own = ownAmong(await client.newestComments(thread, noRetries), await self())
      return { has: (id) => own.some(({ body }) => hasMarker(body, id)), preview: leftoverPreview(own) }
    },
    failureOf: (error) => ({
      error: toDeliveryError(error, clock),
      mayHaveSucceeded: failureOf(error, clock).kind === 'away',
    }),
    previews: { limit: COMMENT_LIMIT - 100, render: asPreview, firstMs: previewEveryMs, whenOvertaken: 'stay' },
  }
}

/** At GitHub's pace the next ones are seconds away; meanwhile other platforms' replies go out. */
const MAX_WAITING = 5
const PACE_MS = 3_000

/** Anybody can write our marker, and a token with write access can edit other people's comments. */
export const ownAmong = (comments: readonly Comment[], self: Identity | undefined): Comment[] =>
  comments.filter(
    ({ body, userId, appId, login }) =>
      isOurs(body) &&
      (self?.kind === 'user'
        ? userId === self.id
        : self?.kind === 'app' && (appId === self.id || login.toLowerCase() === `${self.login}[bot]`.toLowerCase())),
  )

/** A preview left by a process that died: our last comment. */
export const leftoverPreview = (own: readonly Comment[]): number | undefined => {
  const last = own.at(-1)
  return last !== undefined && isPreview(last.body) ? last.id : undefined
}
