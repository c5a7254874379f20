import { AppError } from '../domain/errors.ts'
import type { IncomingMessage } from '../domain/message.ts'
import type { Accepted, Platform, PlatformInbox } from './platform.ts'

/** A platform whose users speak to this very server: what they send is handed in, what they are told is read here. */
export type LocalPlatform = Platform & {
  /** Durable when it answers. Throws `busy` while the platform does not accept. */
  receive(message: Omit<IncomingMessage, 'platform'>): Promise<Accepted>
}

export const createLocalPlatform = (name: string): LocalPlatform => {
  let inbox: PlatformInbox | undefined
  return {
    platform: name,
    limit: undefined,
    start: async (given) => {
      inbox = given
    },
    stop: async () => {
      inbox = undefined
    },
    receive: async (message) => {
      if (inbox === undefined) {
        throw new AppError('busy', 'no messages are accepted at the moment', {
          remedy: 'the server is starting or stopping: try again in a few seconds',
        })
      }
      const accepted = await inbox.accept(message)
      if (accepted.outcome === 'too-old') throw new AppError('usage', 'this message is too old to be accepted')
      return accepted
    },
    // There is nobody to reach: the recorded reply, once it says `sent`, is what its readers read.
    send: async () => {},
  }
}

/**
 * A delivery id chosen by a caller is one of its own conversation's: two callers that both count from 1 must not lose
 * each other's messages. Neither part may have a line break, so that no two pairs are written alike.
 */
export const localDeliveryId = (conversationId: string, deliveryId: string): string =>
  `${conversationId}\n${deliveryId}`
