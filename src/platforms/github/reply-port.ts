import type { Clock } from '../../domain/clock.ts'
import type { ReplyPort, Unit } from '../replies/port.ts'
import type { Comment, GithubClient } from './client.ts'
import { type Thread, threadOf } from './conversation-id.ts'
import { failureOf, toDeliveryError } from './failure.ts'
import { asPreview, hasMarker, isOurs, isPreview, withMarker } from './marker.ts'
import { atOnce, type Identity } from './octokits.ts'

export type ReplyPortParts = {
  readonly client: Pick<GithubClient, 'newestComments' | 'createComment' | 'updateComment'>
  /** Who we are there, once that is known: only what we wrote ourselves is taken for ours. */
  readonly self: () => Promise<Identity | undefined>
  readonly clock: Clock
  readonly previewEveryMs: number
  /** An app has limits of its own in each account that installed it; a token has one for all. */
  readonly isApp: boolean
}

/** Replies are comments. Which ones are there already is written in the comments themselves. */
export const githubReplies = (parts: ReplyPortParts): ReplyPort<Thread, number> => {
  const { client, self, clock, previewEveryMs, isApp } = parts
  const limits = { everyMs: previewEveryMs, queue: { most: MOST_WAITING, eachMs: PACE_MS } }
  return {
    placeOf: threadOf,
    unitOf: ({ owner }): Unit => ({ name: isApp ? owner.toLowerCase() : 'token', ...limits }),
    render: (text) => text,
    post: (thread, text, mark) =>
      client.createComment(thread, mark.kind === 'preview' ? text : withMarker(text, mark.id)),
    edit: (thread, id, text, mark) =>
      client.updateComment(thread, id, mark.kind === 'preview' ? text : withMarker(text, mark.id)),
    find: async (thread) => {
      const own = ownAmong(await client.newestComments(thread, atOnce), await self())
      return { has: (id) => own.some(({ body }) => hasMarker(body, id)), preview: leftPreview(own) }
    },
    failureOf: (error) => ({
      error: toDeliveryError(error, clock),
      unclear: failureOf(error, clock).kind === 'away',
    }),
    previews: { render: asPreview, firstMs: previewEveryMs, whenOvertaken: 'stay' },
  }
}

/** At GitHub's pace the next ones are seconds away: until then the other platforms' replies shall go out. */
const MOST_WAITING = 5
const PACE_MS = 3_000

/** Anybody can write our marker into a comment, and a token that may write may edit other people's comments. */
export const ownAmong = (comments: readonly Comment[], self: Identity | undefined): Comment[] =>
  comments.filter(
    ({ body, userId, appId, login }) =>
      isOurs(body) &&
      (self?.kind === 'user'
        ? userId === self.id
        : self?.kind === 'app' && (appId === self.id || login.toLowerCase() === `${self.login}[bot]`.toLowerCase())),
  )

/** What a process that died was showing: the last of ours, and nothing of ours after it. */
export const leftPreview = (own: readonly Comment[]): number | undefined => {
  const last = own.at(-1)
  return last !== undefined && isPreview(last.body) ? last.id : undefined
}
