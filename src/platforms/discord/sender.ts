import { DeliveryError, type OutgoingMessage } from '../../conversations/outbox/delivery.ts'
import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Logger } from '../../process/log.ts'
import { createReplies, type Replies } from '../replies/engine.ts'
import { addressOf, type ChatAddress } from './conversation-id.ts'
import { discordReplies, type ReplyPortParts } from './reply-port.ts'

export type Sender = {
  send(message: OutgoingMessage): Promise<void>
  preview: Replies<ChatAddress>['preview']
  /** Opens the thread of a message that was just accepted. */
  openThread(conversationId: string, name: string): Promise<void>
  /** Its thread was deleted: don't recreate it. */
  onThreadDeleted(conversationId: string): void
  stop(): void
}

export type SenderParts = ReplyPortParts & { readonly log: Logger }

export const createSender = (parts: SenderParts): Sender => {
  const { log, clock, threads } = parts
  const replies = createReplies(discordReplies(parts), { clock, log })
  const deleted = new BoundedMap<string, true>(MAX_REMEMBERED)
  return {
    send: async (message) => {
      if (deleted.has(message.conversationId)) throw new DeliveryError('refused', 'the thread was deleted')
      await replies.send(message)
    },
    preview: replies.preview,
    openThread: (conversationId, name) =>
      replies.ensureThread(conversationId, () => threads.open(addressOf(conversationId), name)),
    onThreadDeleted: (conversationId) => {
      deleted.set(conversationId, true)
    },
    stop: replies.stopPreviews,
  }
}

const MAX_REMEMBERED = 10_000
