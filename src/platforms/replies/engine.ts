import { DeliveryError, type OutgoingMessage } from '../../conversations/outbox/delivery.ts'
import {
  type Attempt,
  type Conversation,
  type EngineParts,
  forgetOldest,
  inTurn,
  newConversation,
  remember,
} from './conversation.ts'
import { createPreviews } from './previews.ts'
import type { Found, ReplyPort } from './port.ts'
import { createUnits } from './units.ts'

/*
 * How every platform answers. In: replies from the outbox, and what an agent has said so far. Out: posts, edits and
 * deletions through the platform's port, one at a time per conversation, paced by the service's own units. A reply is
 * sent once where the service can tell; splitting and trying again, durably, is the outbox's.
 */

export type Replies<Place> = {
  readonly send: (message: OutgoingMessage) => Promise<void>
  readonly preview: (conversationId: string, text: string) => void
  /** Somebody wrote in the conversation: what we say next belongs below that. */
  readonly heard: (conversationId: string, at?: Heard<Place>) => void
  /** Opens a conversation that is new, before anything is said in it. `open` answers whether it really was. */
  readonly begin: (conversationId: string, open: () => Promise<boolean>) => Promise<void>
  /** No more previews. */
  readonly quiet: () => void
}

export type Heard<Place> = {
  /** Where to answer from now on. */
  readonly place?: Place
  /** It began with that message: nothing of ours can be there yet. */
  readonly isNew?: boolean
}

const MOST_CONVERSATIONS = 10_000

export const createReplies = <Place, Id>(port: ReplyPort<Place, Id>, parts: EngineParts): Replies<Place> => {
  const { clock, log } = parts
  const conversations = new Map<string, Conversation<Place, Id>>()
  const units = createUnits(clock)

  const conversationOf = (conversationId: string): Conversation<Place, Id> | undefined => {
    const known = conversations.get(conversationId)
    if (known !== undefined) return known
    const place = port.placeOf(conversationId)
    if (place === undefined) return undefined
    const made = newConversation<Place, Id>(place)
    conversations.set(conversationId, made)
    if (conversations.size > MOST_CONVERSATIONS) forgetOldest(conversations)
    return made
  }

  const attempt: Attempt<Place, Id> = async (conversation, call, work) => {
    const unit = port.unitOf(conversation.place, call)
    units.assertOpen(unit)
    try {
      return await work()
    } catch (thrown) {
      const { error, unclear } = port.failureOf(thrown)
      if (error.retryAfterMs !== undefined) units.pause(unit, error.retryAfterMs)
      // It may be there. The next look tells, unless posting it again is harmless.
      if (unclear && (call === 'post' || call === 'delete') && port.postsOnce !== true) conversation.found = undefined
      throw error
    }
  }

  /** That it stays for now is no reason to fail. */
  const remove = async (conversation: Conversation<Place, Id>, id: Id): Promise<void> => {
    const gone = port.delete?.bind(port)
    if (gone === undefined) return
    await attempt(conversation, 'delete', () => gone(conversation.place, id)).catch((error: unknown) => {
      log.debug('a preview could not be deleted', { error })
    })
  }

  /** Once per conversation and process, and again after a post whose fate is unclear. */
  const look = async (conversation: Conversation<Place, Id>): Promise<Pick<Found<Id>, 'has'>> => {
    if (conversation.found !== undefined) return conversation.found
    const found = await lookOnce(conversation)
    conversation.found = found
    if (found.preview !== undefined && conversation.shown === undefined) {
      conversation.shown = { id: found.preview, source: '', body: undefined, overtaken: false }
    }
    for (const id of found.stale ?? []) if (id !== conversation.shown?.id) await remove(conversation, id)
    return found
  }
  const lookOnce = async (conversation: Conversation<Place, Id>): Promise<Found<Id>> => {
    const find = port.find?.bind(port)
    if (find === undefined) return nothing
    try {
      return await attempt(conversation, 'find', () => find(conversation.place))
    } catch (error) {
      // Without the right to read we cannot tell, and an answer twice is better than none.
      if (!(error instanceof DeliveryError) || error.kind === 'unreachable') throw error
      log.warn('earlier replies could not be looked for', { error })
      return nothing
    }
  }

  const previews = createPreviews(port, { ...parts, attempt, remove, look })

  const say = async (conversation: Conversation<Place, Id>, message: OutgoingMessage): Promise<void> => {
    const { id, role, part, text } = message
    const isAnswer = role === 'agent' && part === 1
    if (isAnswer) previews.stop(conversation)
    if (conversation.sent.has(id)) return
    const body = port.render(text.trimEnd())
    if (body.trim() === '') return
    if ((await look(conversation)).has(id, body)) return remember(conversation, id)
    const mark = { kind: 'reply', id } as const
    if (!isAnswer || !(await previews.become(conversation, body, mark))) {
      await attempt(conversation, 'post', () => port.post(conversation.place, body, mark))
      await previews.overtaken(conversation, isAnswer ? 'remove' : port.previews.whenOvertaken)
    }
    remember(conversation, id)
  }

  return {
    send: async (message) => {
      const conversation = conversationOf(message.conversationId)
      if (conversation === undefined) {
        throw new DeliveryError('refused', `${message.conversationId.slice(0, 80)} is not a conversation here`)
      }
      const leave = units.enter(port.unitOf(conversation.place, 'post'))
      await inTurn(conversation, () => say(conversation, message)).finally(leave)
    },
    preview: (conversationId, text) => {
      const conversation = text.trim() === '' ? undefined : conversationOf(conversationId)
      if (conversation !== undefined) previews.want(conversation, text)
    },
    heard: (conversationId, { place, isNew = false } = {}) => {
      const conversation = conversationOf(conversationId)
      if (conversation === undefined) return
      if (conversation.shown !== undefined) conversation.shown = { ...conversation.shown, overtaken: true }
      if (place !== undefined) conversation.place = place
      if (isNew) conversation.found ??= nothing
    },
    begin: async (conversationId, open) => {
      const conversation = conversationOf(conversationId)
      if (conversation === undefined) return
      await inTurn(conversation, async () => {
        if (conversation.found === undefined && (await open())) conversation.found = nothing
      })
    },
    quiet: () => {
      for (const conversation of conversations.values()) previews.stop(conversation)
    },
  }
}

const nothing: Found<never> = { has: () => false }
