import type { Clock } from '../../domain/clock.ts'
import { DeliveryError, type OutgoingMessage } from '../../conversations/delivery.ts'
import type { Logger } from '../../process/log.ts'
import type { Comment, GithubClient } from './client.ts'
import { type Thread, threadOf } from './conversation-id.ts'
import { failureOf, toDeliveryError } from './failure.ts'
import { hasMarker, isOurs, isPreview, withMarker } from './marker.ts'
import { atOnce, type Identity } from './octokits.ts'
import { createPreviews } from './previews.ts'

export type Replies = {
  readonly send: (message: OutgoingMessage) => Promise<void>
  readonly preview: (conversationId: string, text: string) => void
  readonly stop: () => void
}

export type RepliesParts = {
  readonly client: Pick<GithubClient, 'newestComments' | 'createComment' | 'updateComment'>
  /** Who we are there, once that is known: only what we wrote ourselves is taken for ours. */
  readonly self: () => Identity | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly previewEveryMs: number
}

/** Replies as comments, each once. Which ones are there already is written in the comments themselves. */
export const createReplies = (parts: RepliesParts): Replies => {
  const { client, clock } = parts
  /** Per conversation the last reply that is known to be there, latest conversation last. */
  const lastSent = new Map<string, string>()
  /** Those whose comment may be there although GitHub did not say so. */
  const unsure = new Set<string>()
  const previews = createPreviews(parts)
  let waiting = 0

  const sent = (conversationId: string, id: string): void => {
    unsure.delete(id)
    lastSent.delete(conversationId)
    lastSent.set(conversationId, id)
    const [oldest] = lastSent.keys()
    if (lastSent.size > MOST_REMEMBERED && oldest !== undefined) lastSent.delete(oldest)
  }
  /**
   * Replies go out in order, so only the first one of a conversation can be one that an earlier process has sent and
   * could not record any more; and one whose fate GitHub left open.
   */
  const mayBeThere = ({ conversationId, id }: OutgoingMessage): boolean =>
    unsure.has(id) || !lastSent.has(conversationId)

  const deliver = async (thread: Thread, message: OutgoingMessage): Promise<void> => {
    const { id, conversationId, text } = message
    const body = withMarker(text, id)
    const shown = message.role === 'agent' && message.part === 1 ? await previews.settle(conversationId) : undefined
    let place = shown?.commentId
    if (mayBeThere(message) || shown?.unsure === true) {
      const own = ownAmong(await client.newestComments(thread, atOnce), parts.self())
      if (own.some((comment) => hasMarker(comment.body, id))) return
      place ??= message.role === 'agent' && message.part === 1 ? leftPreview(own) : undefined
    }
    if (place === undefined || !(await edited(client, thread, place, body, clock))) {
      await client.createComment(thread, body)
    }
  }

  return {
    send: async (message) => {
      const { id, conversationId } = message
      const thread = threadOf(conversationId)
      if (thread === undefined) throw new DeliveryError('refused', 'this is no issue and no pull request')
      if (lastSent.get(conversationId) === id) return
      if (waiting >= MOST_WAITING) {
        // At GitHub's pace the next ones are seconds away: until then the other platforms' replies shall go out.
        throw new DeliveryError('unreachable', 'too many comments at once', { retryAfterMs: waiting * PACE_MS })
      }
      waiting += 1
      try {
        await deliver(thread, message)
        sent(conversationId, id)
        if (message.role === 'agent') previews.done(conversationId)
      } catch (error) {
        if (failureOf(error, clock).kind === 'away') unsure.add(id)
        throw toDeliveryError(error, clock)
      } finally {
        waiting -= 1
      }
    },
    preview: (conversationId, text) => previews.show(conversationId, text),
    stop: () => previews.stop(),
  }
}

const MOST_REMEMBERED = 10_000
const MOST_WAITING = 5
const PACE_MS = 3_000

/** False: somebody has deleted that comment. */
const edited = async (
  client: RepliesParts['client'],
  thread: Thread,
  id: number,
  body: string,
  clock: Clock,
): Promise<boolean> => {
  try {
    await client.updateComment(thread, id, body)
    return true
  } catch (error) {
    if (failureOf(error, clock).kind === 'missing') return false
    throw error
  }
}

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
