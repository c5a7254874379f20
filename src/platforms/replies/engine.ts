/*
 * How every platform replies. In: replies from the outbox, and an agent's output so far. Out: posts, edits and
 * deletions through the platform's port, one at a time per conversation, within the service's rate limits. A reply is
 * sent once where the service can detect duplicates; the outbox splits and durably retries.
 */
import { DeliveryError, type OutgoingMessage } from '../../conversations/outbox/delivery.ts'
import {
  type Attempt,
  type Conversation,
  type EngineParts,
  forgetOldest,
  runInTurn,
  newConversation,
  remember,
} from './conversation.ts'
import { createPreviews } from './previews.ts'
import type { Found, ReplyPort } from './port.ts'
import { createRateLimits } from './rate-limits.ts'

export type Replies<Place> = {
  readonly send: (message: OutgoingMessage) => Promise<void>
  readonly preview: (conversationId: string, text: string) => void
  /** Somebody wrote in the conversation: our next message goes below it. */
  readonly onUserMessage: (conversationId: string, at?: UserMessage<Place>) => void
  /** Opens a new conversation before the first message is sent. `open` resolves to whether it was new. */
  readonly ensureThread: (conversationId: string, open: () => Promise<boolean>) => Promise<void>
  /** Stops all previews. */
  readonly stopPreviews: () => void
}

export type UserMessage<Place> = {
  /** Where to reply from now on. */
  readonly place?: Place
  /** The conversation began with this message, so none of ours can be there. */
  readonly isNew?: boolean
}

const MAX_CONVERSATIONS = 10_000

export const createReplies = <Place, Id>(port: ReplyPort<Place, Id>, parts: EngineParts): Replies<Place> => {
  const { clock, log } = parts
  const conversations = new Map<string, Conversation<Place, Id>>()
  const rateLimits = createRateLimits(clock)

  const conversationOf = (conversationId: string): Conversation<Place, Id> | undefined => {
    const known = conversations.get(conversationId)
    if (known !== undefined) return known
    const place = port.placeOf(conversationId)
    if (place === undefined) return undefined
    const made = newConversation<Place, Id>(place)
    conversations.set(conversationId, made)
    if (conversations.size > MAX_CONVERSATIONS) forgetOldest(conversations)
    return made
  }

  const attempt: Attempt<Place, Id> = async (conversation, call, work) => {
    const limit = port.rateLimitOf(conversation.place, call)
    rateLimits.assertOpen(limit)
    try {
      return await work()
    } catch (thrown) {
      const { error, mayHaveSucceeded: unclear } = port.failureOf(thrown)
      if (error.retryAfterMs !== undefined) rateLimits.pause(limit, error.retryAfterMs)
      // It may have been posted. Look it up next time, unless posting twice is harmless.
      if (unclear && (call === 'post' || call === 'delete') && port.postsOnce !== true) conversation.found = undefined
      throw error
    }
  }

  /** A preview that can't be deleted isn't a failure. */
  const remove = async (conversation: Conversation<Place, Id>, id: Id): Promise<void> => {
    const gone = port.delete?.bind(port)
    if (gone === undefined) return
    await attempt(conversation, 'delete', () => gone(conversation.place, id)).catch((error: unknown) => {
      log.debug('a preview could not be deleted', { error })
    })
  }

  /** Once per conversation and process, and again after a post with an unknown outcome. */
  const findEarlier = async (conversation: Conversation<Place, Id>): Promise<Pick<Found<Id>, 'has'>> => {
    if (conversation.found !== undefined) return conversation.found
    const found = await queryEarlier(conversation)
    conversation.found = found
    if (found.preview !== undefined && conversation.shown === undefined) {
      conversation.shown = { id: found.preview, source: '', body: undefined, overtaken: false }
    }
    for (const id of found.stale ?? []) if (id !== conversation.shown?.id) await remove(conversation, id)
    return found
  }
  const queryEarlier = async (conversation: Conversation<Place, Id>): Promise<Found<Id>> => {
    const find = port.find?.bind(port)
    if (find === undefined) return nothingFound
    try {
      return await attempt(conversation, 'find', () => find(conversation.place))
    } catch (error) {
      // Without read permission we can't tell, and a duplicate reply is better than none.
      if (!(error instanceof DeliveryError) || error.kind === 'unreachable') throw error
      log.warn('earlier replies could not be looked for', { error })
      return nothingFound
    }
  }

  const previews = createPreviews(port, { ...parts, attempt, remove, findEarlier })

  const deliver = async (conversation: Conversation<Place, Id>, message: OutgoingMessage): Promise<void> => {
    const { id, role, part, text, actions = [] } = message
    const isAnswer = role === 'agent' && part === 1
    if (isAnswer) previews.stop(conversation)
    if (conversation.sent.has(id)) return
    const body = port.render(text.trimEnd())
    if (body.trim() === '') return
    if ((await findEarlier(conversation)).has(id, body)) return remember(conversation, id)
    const mark = { kind: 'reply', id } as const
    if (!isAnswer || !(await previews.turnIntoReply(conversation, body, mark, actions))) {
      await attempt(conversation, 'post', () => port.post(conversation.place, body, mark, actions))
      await previews.onOvertaken(conversation, isAnswer ? 'remove' : port.previews.whenOvertaken)
    }
    remember(conversation, id)
  }

  return {
    send: async (message) => {
      const conversation = conversationOf(message.conversationId)
      if (conversation === undefined) {
        throw new DeliveryError('refused', `unknown conversation ${message.conversationId.slice(0, 80)}`)
      }
      const leave = rateLimits.enter(port.rateLimitOf(conversation.place, 'post'))
      await runInTurn(conversation, () => deliver(conversation, message)).finally(leave)
    },
    preview: (conversationId, text) => {
      const conversation = text.trim() === '' ? undefined : conversationOf(conversationId)
      if (conversation !== undefined) previews.update(conversation, text)
    },
    onUserMessage: (conversationId, { place, isNew = false } = {}) => {
      const conversation = conversationOf(conversationId)
      if (conversation === undefined) return
      if (conversation.shown !== undefined) conversation.shown = { ...conversation.shown, overtaken: true }
      if (place !== undefined) conversation.place = place
      if (isNew) conversation.found ??= nothingFound
    },
    ensureThread: async (conversationId, open) => {
      const conversation = conversationOf(conversationId)
      if (conversation === undefined) return
      await runInTurn(conversation, async () => {
        if (conversation.found === undefined && (await open())) conversation.found = nothingFound
      })
    },
    stopPreviews: () => {
      for (const conversation of conversations.values()) previews.stop(conversation)
    },
  }
}

const nothingFound: Found<never> = { has: () => false }
